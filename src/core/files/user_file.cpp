#include "core/files/user_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/ids.hpp"
#include "core/process/process.hpp"
#include "core/text/units.hpp"

namespace syslab {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_to_write(const fs::path& file, std::string_view why, ErrorKind kind = ErrorKind::usage) {
  throw Error(kind, fmt::format("cannot write '{}': {}; choose another place", file.string(), why));
}

[[noreturn]] void refuse_system_error(const fs::path& file, int error) {
  // No folder is made for a report: a mistyped one would go unseen.
  const fs::path folder = file.parent_path();
  std::error_code ignored;
  const ErrorKind kind = kind_of_write_error(error);
  if (error == ENOSPC || error == EDQUOT) {
    throw Error(kind, fmt::format("cannot write '{}': {}; free space or choose another place", file.string(),
                                  std::generic_category().message(error)));
  }
  if (kind != ErrorKind::usage) refuse_to_write(file, std::generic_category().message(error), kind);
  if (folder.empty() || fs::is_directory(folder, ignored)) {
    refuse_to_write(file, std::generic_category().message(error));
  }
  if (fs::exists(folder, ignored)) {
    refuse_to_write(file, fmt::format("it would lie in what is no folder, '{}'", folder.string()));
  }
  throw Error(ErrorKind::usage,
              fmt::format("cannot write '{}': there is no folder '{}'; make it first (mkdir -p '{}') or choose another "
                          "place",
                          file.string(), folder.string(), folder.string()));
}

std::string kind_of(mode_t mode) {
  if (S_ISREG(mode)) return {};
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

// Nothing: it may not be read.
std::optional<bool> is_sqlite(const fs::path& file) {
  static constexpr std::string_view kMagic{"SQLite format 3\0", 16};
  const FileDescriptor opened(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!opened) return ::stat(file.c_str(), &status) == 0 ? std::nullopt : std::optional(false);
  std::array<char, kMagic.size()> begin{};
  return ::read(opened.get(), begin.data(), begin.size()) == static_cast<ssize_t>(begin.size()) &&
         std::string_view(begin.data(), begin.size()) == kMagic;
}

void require_may_be_replaced(const fs::path& file, const fs::path& target, const std::vector<fs::path>& kept) {
  if (const std::string kind = special_kind(target); !kind.empty()) {
    refuse_to_write(file, fmt::format("it is {}, and only a plain file is written", kind));
  }
  std::error_code ignored;
  for (const fs::path& one : kept) {
    if (fs::equivalent(target, one, ignored) ||
        fs::weakly_canonical(target, ignored) == fs::weakly_canonical(one, ignored)) {
      refuse_to_write(file, fmt::format("it is the database in use, or belongs to it ('{}')", one.string()));
    }
  }
  const std::optional<bool> database = is_sqlite(target);
  if (!database)
    refuse_to_write(file, "you may not read it, and it may be an SQLite database, which is never replaced");
  if (*database) refuse_to_write(file, "it is an SQLite database, which is never replaced");
}

}  // namespace

ErrorKind kind_of_write_error(int errno_value, ErrorKind otherwise) {
  const bool is_disk = errno_value == ENOSPC || errno_value == EDQUOT || errno_value == EROFS || errno_value == EIO;
  return is_disk ? ErrorKind::internal : otherwise;
}

void keep_mode(int draft, const fs::path& target) {
  struct stat status {};
  if (::stat(target.c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
    static_cast<void>(::fchmod(draft, status.st_mode & 0777));  // where it has none, the draft stays private
  }
}

fs::path behind_links(const fs::path& file) {
  fs::path at = file;
  std::error_code failed;
  for (int links = 0; links < 40 && fs::is_symlink(at, failed); ++links) {
    const fs::path next = fs::read_symlink(at, failed);
    if (failed) break;
    at = next.is_absolute() ? next : at.parent_path() / next;
  }
  return at;
}

std::string special_kind(const fs::path& file) {
  struct stat status {};
  return ::stat(file.c_str(), &status) == 0 ? kind_of(status.st_mode) : std::string();
}

std::string read_user_file(const fs::path& file, std::uint64_t at_most) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::usage, fmt::format("cannot read '{}': {}", file.string(), why));
  };
  const FileDescriptor opened(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));  // a FIFO must not make us wait
  if (!opened) refuse(std::generic_category().message(errno));
  struct stat status {};
  if (::fstat(opened.get(), &status) != 0) refuse(std::generic_category().message(errno));
  if (const std::string kind = kind_of(status.st_mode); !kind.empty()) {
    refuse(fmt::format("it is {}, and only a plain file is read; {}", kind,
                       S_ISDIR(status.st_mode) ? "remove it, or move it away and put a file in its place"
                                               : "write what it gives to a file first"));
  }
  std::string text;
  std::array<char, 1 << 16> buffer{};
  while (true) {
    const ssize_t got = ::read(opened.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(std::generic_category().message(errno));
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    // Counted as it is read: files of /proc say that they have no bytes, and a file may grow.
    if (text.size() > at_most) refuse(fmt::format("it has more than the {} that are read here", format_bytes(at_most)));
  }
}

FileInMaking::FileInMaking(fs::path file, std::string_view bytes, const std::vector<fs::path>& kept)
    : file_(std::move(file)), target_(behind_links(file_)) {
  require_may_be_replaced(file_, target_, kept);
  const fs::path draft = fmt::format("{}.{}.tmp", target_.string(), new_uuid7());
  const FileDescriptor made(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!made) refuse_system_error(file_, errno);
  keep_mode(made.get(), target_);
  draft_ = draft;
  while (!bytes.empty()) {
    const ssize_t written = ::write(made.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error = errno;
      ::unlink(draft_.c_str());
      refuse_system_error(file_, error);
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

FileInMaking::FileInMaking(FileInMaking&& other) noexcept
    : file_(std::move(other.file_)), target_(std::move(other.target_)), draft_(std::exchange(other.draft_, {})) {}

FileInMaking::~FileInMaking() {
  if (!draft_.empty()) ::unlink(draft_.c_str());
}

void FileInMaking::place() {
  if (::rename(draft_.c_str(), target_.c_str()) != 0) refuse_system_error(file_, errno);
  draft_.clear();
}

}  // namespace syslab
