#include "compare/kept_builds.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "compare/revisions.hpp"
#include "core/error.hpp"
#include "core/format_seconds.hpp"
#include "core/hash.hpp"
#include "core/process.hpp"
#include "core/remove_tree.hpp"
#include "core/text.hpp"
#include "core/units.hpp"
#include "runner/interruption.hpp"
#include "session/capture.hpp"

namespace syslab::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLimit = std::uint64_t{4} << 30;
constexpr const char* kDone = "done";  // in a build's folder, written last: the commit
constexpr const char* kOwn = "syslab-builds";

fs::path cache_folder() {
  const auto from = [](const char* name) -> std::string {
    const char* said = std::getenv(name);
    return said != nullptr && *said == '/' ? said : "";
  };
  if (const std::string said = from("SYSLAB_BUILDS"); !said.empty()) return fs::path(said) / kOwn;
  if (const std::string said = from("XDG_CACHE_HOME"); !said.empty()) return fs::path(said) / "syslab" / "builds";
  std::string home = from("HOME");
  if (const passwd* entry = ::getpwuid(::geteuid()); home.empty() && entry != nullptr) home = entry->pw_dir;
  if (home.empty())
    throw Error(ErrorKind::config, "there is no folder for builds; set SYSLAB_BUILDS to one of your own");
  return fs::path(home) / ".cache" / "syslab" / "builds";
}

std::uint64_t limit_of_cache() {
  const char* said = std::getenv("SYSLAB_BUILDS_LIMIT");
  if (said == nullptr) return kLimit;
  const auto bytes = parse_bytes(said);
  if (!bytes) throw Error(ErrorKind::config, fmt::format("SYSLAB_BUILDS_LIMIT '{}' is no size such as 4Gi", said));
  return *bytes;
}

std::uint64_t size_of(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    if (at->is_regular_file(gone) && !at->is_symlink(gone)) bytes += at->file_size(gone);
  }
  return bytes;
}

// The last words of a build that failed: compilers end with what stopped them.
std::string last_line(const fs::path& file) {
  std::ifstream in(file);
  std::string last;
  for (std::string line; std::getline(in, line);) {
    if (!trim(line).empty()) last = trim(line);
  }
  return last.substr(0, 200);
}

void git_or_throw(const std::string& repository, std::vector<std::string> words) {
  words.insert(words.begin(), {"git", "-C", repository});
  if (output_of(words)) return;
  std::string command;
  for (const std::string& word : words) command += (command.empty() ? "" : " ") + shell_word(word);
  throw Error(ErrorKind::config, fmt::format("`{}` failed: a checkout of an old revision could not be made", command));
}

[[noreturn]] void refuse_folder(const fs::path& folder, const std::string& why) {
  throw Error(ErrorKind::config, fmt::format("the folder '{}' for builds cannot be made ({}); SYSLAB_BUILDS says where "
                                             "else",
                                             folder.string(), why));
}

// Programs that will be run lie in it: nobody else may have made it, or write there.
void make_own(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder.parent_path(), error);
  if (error) refuse_folder(folder, error.message());
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) refuse_folder(folder, std::strerror(errno));
  struct stat found {};
  const bool ours = ::lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == ::geteuid() &&
                    (found.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  if (!ours) {
    throw Error(ErrorKind::config,
                fmt::format("builds are run from '{}', which is no folder that you alone can enter: `chmod 700` it if "
                            "it is yours, or set SYSLAB_BUILDS to another",
                            folder.string()));
  }
}

// The commit that was built there to its end; empty: none.
std::string done_in(const fs::path& build) {
  std::string commit;
  std::ifstream(build / kDone) >> commit;
  return commit;
}

FileDescriptor locked(const fs::path& file, int how) {
  FileDescriptor lock(::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (!lock || ::flock(lock.get(), how) != 0) {
    if (lock && errno == EWOULDBLOCK) return {};
    throw_errno(ErrorKind::config, fmt::format("lock '{}'", file.string()), errno, "flock");
  }
  return lock;
}

// Beside the build, so that it outlives it: each process that may run the build holds it shared, who removes it alone.
fs::path use_of(const fs::path& build) { return build.string() + ".lock"; }

// What this process has asked for: it will run it.
std::map<fs::path, FileDescriptor>& in_use() {
  static std::map<fs::path, FileDescriptor> builds;
  return builds;
}

// A line that is written over on a terminal; elsewhere only what begins.
class BuildProgress {
 public:
  BuildProgress(const Console& console, std::string what) : console_(console), what_(std::move(what)) {
    if (!live()) console_.note("building " + what_);
  }
  ~BuildProgress() {
    if (live()) to_error("\r\033[K");
  }
  BuildProgress(const BuildProgress&) = delete;
  BuildProgress& operator=(const BuildProgress&) = delete;
  void tick() {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    if (live()) to_error(fmt::format("\r\033[Kbuilding {}: {}", what_, format_seconds(seconds)));
  }

 private:
  bool live() const { return console_.error_is_terminal() && !console_.quiet(); }
  const Console& console_;
  std::string what_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace

BuildRecipe recipe_of_syslab(const std::string& repository) {
  return {repository,
          "test -f build/build.ninja || meson setup build -Dunity=on -Dunity_size=8; exec ninja -C build syslab",
          "build/syslab"};
}

KeptBuilds::KeptBuilds(const Console& console, BuildRecipe recipe)
    : console_(console),
      recipe_(std::move(recipe)),
      key_(sha256_hex(recipe_.repository + '\0' + recipe_.command + '\0' + recipe_.artifact).substr(0, 12)),
      root_(cache_folder()),
      folder_(root_ / key_),
      limit_(limit_of_cache()) {
  make_own(root_);
  std::error_code error;
  fs::create_directory(folder_, error);
  if (error) refuse_folder(folder_, error.message());
}

Built KeptBuilds::build(const std::string& commit) {
  if (const auto known = known_.find(commit); known != known_.end()) return known->second;
  const FileDescriptor lock = locked(folder_ / "lock", LOCK_EX);  // of one recipe, one process builds at a time
  const fs::path kept = folder_ / commit;
  if (!in_use().contains(kept)) in_use().emplace(kept, locked(use_of(kept), LOCK_SH));
  Built built;
  std::error_code error;
  if (done_in(kept) == commit) {
    fs::last_write_time(kept / kDone, fs::file_time_type::clock::now(), error);
    built = {commit, (kept / (recipe_.artifact.empty() ? "tree" : fs::path(recipe_.artifact).filename())).string(), {}};
  } else {
    built = make(commit, kept);
  }
  if (!built.interrupted) known_[commit] = built;
  return built;
}

Built KeptBuilds::make(const std::string& commit, const fs::path& kept) {
  std::error_code error;
  fs::create_directories(kept, error);
  const bool whole = recipe_.artifact.empty();
  const fs::path tree = whole ? kept / "tree" : folder_ / "tree", log = kept / "log";
  check_out(commit, tree);
  Built built{commit, {}, {}};
  if (!whole) fs::remove(tree / recipe_.artifact, error);  // what is kept was made now, or is not there
  if (!recipe_.command.empty()) built.failed = run_command(commit, tree, log, built.interrupted);
  if (!built.failed.empty()) {
    if (whole) remove_tree(tree.string());  // only why it failed is kept
    return built;
  }
  if (whole) {
    built.path = tree.string();
  } else {
    const fs::path made = tree / recipe_.artifact, copy = kept / made.filename();
    if (!fs::is_regular_file(made, error)) {
      built.failed = fmt::format("it built, and made no '{}'", recipe_.artifact);
      return built;
    }
    fs::copy_file(made, copy.string() + ".new", fs::copy_options::overwrite_existing, error);
    if (!error) fs::rename(copy.string() + ".new", copy, error);
    if (error) throw Error(ErrorKind::config, fmt::format("'{}' cannot be kept: {}", copy.string(), error.message()));
    built.path = copy.string();
  }
  if (!(std::ofstream(kept / kDone) << commit << std::endl)) {
    throw Error(ErrorKind::config, fmt::format("'{}' cannot be written: is the disk full?", (kept / kDone).string()));
  }
  make_room();
  return built;
}

void KeptBuilds::check_out(const std::string& commit, const fs::path& tree) {
  std::error_code error;
  if (fs::exists(tree / ".git", error) && recipe_.artifact.empty()) {  // left by one that did not end
    remove_tree(tree.string());
  }
  if (fs::exists(tree / ".git", error)) {
    git_or_throw(tree.string(), {"checkout", "--quiet", "--force", "--detach", commit});
  } else {
    output_of({"git", "-C", recipe_.repository, "worktree", "prune"});
    git_or_throw(recipe_.repository, {"worktree", "add", "--quiet", "--force", "--detach", tree.string(), commit});
  }
}

std::string KeptBuilds::run_command(const std::string& commit, const fs::path& tree, const fs::path& log,
                                    bool& interrupted) {
  const std::string subject = subject_of(recipe_.repository, commit);
  BuildProgress progress(console_, fmt::format("{} {}", short_commit(commit), subject.substr(0, 60)));
  SpawnOptions options;
  options.argv = {
      "sh", "-c", "cd \"$1\" && exec sh -c \"$2\" >\"$3\" 2>&1", "sh", tree.string(), recipe_.command, log.string()};
  options.environment = {{"SYSLAB_REVISION", commit}};
  options.capture_stderr = false;
  const runner::Interruption interruption;
  Process build = Process::spawn(options);
  build.close_input();
  for (;;) {
    if (const auto ended = build.poll()) {
      if (!ended->signalled && ended->code == 0) return {};
      const std::string last = last_line(log);
      return fmt::format("does not build ({}{}{}; {})", ended->describe(), last.empty() ? "" : ": ", last,
                         log.string());
    }
    if (interruption.signal() != 0) {
      build.kill_group(SIGKILL);
      build.wait();
      interrupted = true;
      return "interrupted while it was built";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    progress.tick();
  }
}

void KeptBuilds::make_room() {
  struct Entry {
    fs::path folder;
    fs::file_time_type used;
    std::uint64_t bytes;
  };
  std::vector<Entry> entries;
  std::error_code error;
  const std::uint64_t all = size_of(root_);
  if (all <= limit_) return;
  for (const auto& recipe : fs::directory_iterator(root_, error)) {
    std::error_code ignored;
    for (const auto& one : fs::directory_iterator(recipe.path(), ignored)) {
      const auto used = fs::last_write_time(one.path() / kDone, ignored);
      const bool made_here = done_in(one.path()) == one.path().filename();
      if (made_here && !ignored) entries.push_back({one.path(), used, size_of(one.path())});
    }
  }
  std::ranges::sort(entries, {}, &Entry::used);
  std::uint64_t left = all;
  for (const Entry& entry : entries) {
    if (left <= limit_) break;
    const FileDescriptor alone = locked(use_of(entry.folder), LOCK_EX | LOCK_NB);
    if (!alone) continue;                     // somebody may run it
    fs::remove(entry.folder / kDone, error);  // first: what is removed in part is no build
    if (remove_tree(entry.folder.string())) left -= std::min(left, entry.bytes);
  }
}

}  // namespace syslab::cli
