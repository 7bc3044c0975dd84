#include "core/files/temporary_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "core/error.hpp"
#include "core/files/remove_tree.hpp"
#include "core/files/user_file.hpp"
#include "core/process/environment_variable.hpp"

namespace syslab {
namespace {

constexpr const char* kBeginning = "syslab-held-";

std::string base_folder() {
  std::string base = environment_variable("TMPDIR");
  return base.starts_with('/') ? base : "/tmp";
}

[[noreturn]] void refuse_base(const std::string& why, ErrorKind kind = ErrorKind::config) {
  throw Error(kind,
              fmt::format("no temporary folder can be made in '{}': {}; set TMPDIR to a folder that you may write",
                          base_folder(), why));
}

[[noreturn]] void refuse_base(int error) {
  refuse_base(std::generic_category().message(error), kind_of_write_error(error, ErrorKind::config));
}

FileDescriptor open_folder(const std::string& path) {
  return FileDescriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool is_at(const std::string& path, const FileDescriptor& folder) {
  struct stat named {
  }, opened{};
  return ::lstat(path.c_str(), &named) == 0 && ::fstat(folder.get(), &opened) == 0 && named.st_ino == opened.st_ino &&
         named.st_dev == opened.st_dev;
}

}  // namespace

// Between its making and its lock a folder looks like a left one; whoever took it for that has removed it by the time
// that we have the lock, and another one is made.
TemporaryFolder::TemporaryFolder() {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    path_ = fmt::format("{}/{}XXXXXX", base_folder(), kBeginning);
    if (::mkdtemp(path_.data()) == nullptr) refuse_base(errno);
    lock_ = open_folder(path_);
    if (!lock_) continue;
    ::flock(lock_.get(), LOCK_EX);  // where folders cannot be locked, nobody takes them for left ones either
    if (is_at(path_, lock_)) return;
  }
  throw Error(ErrorKind::internal, fmt::format("temporary folders in '{}' are removed as soon as they are made; is "
                                               "something else cleaning it? TMPDIR names another place",
                                               base_folder()));
}

void require_temporary_folders() {
  struct stat found {};
  const std::string base = base_folder();
  if (::stat(base.c_str(), &found) != 0) refuse_base(errno);
  if (!S_ISDIR(found.st_mode)) refuse_base("it is no folder");
  if (::access(base.c_str(), W_OK | X_OK) != 0) refuse_base(errno);
}

TemporaryFolder::~TemporaryFolder() { remove_tree(path_, kMostCleaning); }

int remove_left_folders() {
  int removed = 0;
  const auto until = std::chrono::steady_clock::now() + kMostCleaning;
  std::error_code failed;
  for (std::filesystem::directory_iterator it(base_folder(), failed), end; !failed && it != end; it.increment(failed)) {
    if (!it->path().filename().string().starts_with(kBeginning)) continue;
    const FileDescriptor folder = open_folder(it->path().string());
    struct stat status {};
    if (!folder || ::fstat(folder.get(), &status) != 0 || status.st_uid != ::geteuid()) continue;
    if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) continue;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;  // the next call continues
    if (remove_tree(it->path().string(), left)) ++removed;
  }
  return removed;
}

}  // namespace syslab
