#include "judge/landlock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>

#include "core/error.hpp"
#include "judge/other_names.hpp"

namespace syslab::judge {
namespace {

namespace fs = std::filesystem;

// Numbers and bits are the same on every architecture.
constexpr long kCreateRuleset = 444, kAddRule = 445;
constexpr std::uint32_t kAskVersion = 1;
constexpr int kPathBeneath = 1;

constexpr std::uint64_t kExecute = 1U << 0, kWriteFile = 1U << 1, kReadFile = 1U << 2, kReadFolder = 1U << 3;
constexpr std::uint64_t kRemoveAndMake = 0x1ff0;  // of folders, files, devices, sockets, FIFOs and links: bits 4 to 12
constexpr std::uint64_t kRefer = 1U << 13, kTruncate = 1U << 14, kIoctlDevice = 1U << 15;
constexpr std::uint64_t kTcp = 3;     // bind, connect
constexpr std::uint64_t kScopes = 3;  // abstract sockets, signals

struct RulesetAttributes {
  std::uint64_t files = 0, network = 0, scopes = 0;
};

struct [[gnu::packed]] PathBeneath {
  std::uint64_t allowed = 0;
  std::int32_t parent = -1;
};

// What the kernel's version knows of these rights.
std::uint64_t known_files(int version) {
  std::uint64_t known = kExecute | kWriteFile | kReadFile | kReadFolder | kRemoveAndMake;
  if (version >= 2) known |= kRefer;
  if (version >= 3) known |= kTruncate;
  if (version >= 5) known |= kIoctlDevice;
  return known;
}

class Ruleset {
 public:
  Ruleset(int version, bool network) : known_(known_files(version)) {
    const RulesetAttributes asked{known_, version >= 4 && !network ? kTcp : 0, version >= 6 ? kScopes : 0};
    const std::size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
    fd_.reset(static_cast<int>(::syscall(kCreateRuleset, &asked, size, 0U)));
    if (!fd_) throw_errno(ErrorKind::internal, "make a Landlock ruleset", errno, "landlock_create_ruleset");
  }

  // Nothing where there is no such path, or it is a link: what links lead to is judged by its own place.
  void allow(const fs::path& path, std::uint64_t rights) {
    const FileDescriptor place(::open(path.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW));
    struct stat found {};
    if (!place || ::fstat(place.get(), &found) != 0 || S_ISLNK(found.st_mode)) return;
    if (!S_ISDIR(found.st_mode)) rights &= kExecute | kWriteFile | kReadFile | kTruncate | kIoctlDevice;
    const PathBeneath rule{rights & known_, place.get()};
    if (rule.allowed == 0) return;
    if (::syscall(kAddRule, fd_.get(), kPathBeneath, &rule, 0U) != 0) {
      throw_errno(ErrorKind::internal, "allow '" + path.string() + "' behind the walls", errno, "landlock_add_rule");
    }
  }

  FileDescriptor take() { return std::move(fd_); }

 private:
  std::uint64_t known_;
  FileDescriptor fd_;
};

// A right that a folder gives cannot be taken back further down: so it is given beside each folder on the way.
void allow_beside(Ruleset& rules, const fs::path& folder, const std::vector<fs::path>& hidden, std::uint64_t rights) {
  std::error_code none;
  for (fs::directory_iterator entry(folder, none), end; !none && entry != end; entry.increment(none)) {
    const fs::path& path = entry->path();
    if (std::ranges::find(hidden, path) != hidden.end()) continue;
    const bool leads_there =
        std::ranges::any_of(hidden, [&](const fs::path& one) { return one.string().starts_with(path.string() + "/"); });
    if (leads_there) {
      allow_beside(rules, path, hidden, rights);
    } else {
      rules.allow(path, rights);
    }
  }
}

void allow_but_for(Ruleset& rules, const std::vector<std::string>& hidden, std::uint64_t rights) {
  std::vector<fs::path> kept_back;
  for (const std::string& folder : hidden) {
    std::error_code none;
    if (const fs::path real = folder.empty() ? fs::path() : fs::weakly_canonical(folder, none); !real.empty()) {
      kept_back.push_back(real);
      std::ranges::copy(other_mounts_of(real.string()), std::back_inserter(kept_back));
    }
  }
  if (kept_back.empty()) return rules.allow("/", rights);
  allow_beside(rules, "/", kept_back, rights);
}

}  // namespace

int landlock_version() {
  return std::max(0, static_cast<int>(::syscall(kCreateRuleset, nullptr, std::size_t{0}, kAskVersion)));
}

FileDescriptor make_ruleset(const std::string& writable, const std::vector<std::string>& hidden, bool shared_memory,
                            bool network, const std::string& shown, const std::vector<std::string>& unlisted) {
  Ruleset rules(landlock_version(), network);
  rules.allow("/", kExecute);
  // A disk's device has all files on it, and others have a screen, a terminal or the kernel's log.
  std::vector<std::string> unread = hidden;
  unread.emplace_back("/dev");
  allow_but_for(rules, unread, kReadFile);
  allow_but_for(rules, unlisted, kReadFolder);
  if (!shown.empty()) rules.allow(shown, kReadFile | kReadFolder);
  const std::uint64_t files = kReadFile | kReadFolder | kWriteFile | kTruncate | kRemoveAndMake | kRefer;
  rules.allow(fs::canonical(writable), files);
  for (const char* device : {"null", "zero", "full", "random", "urandom"}) {
    rules.allow(fs::path("/dev") / device, kReadFile | kWriteFile | kIoctlDevice);
  }
  std::error_code none;
  for (fs::directory_iterator entry("/dev", none), end; !none && entry != end; entry.increment(none)) {
    if (!entry->path().filename().string().starts_with("nvidia")) continue;
    rules.allow(entry->path(), kReadFile | kReadFolder | kWriteFile | kIoctlDevice);
  }
  if (shared_memory) rules.allow("/dev/shm", files);
  return rules.take();
}

}  // namespace syslab::judge
