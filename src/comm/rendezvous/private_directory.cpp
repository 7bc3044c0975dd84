#include "comm/rendezvous/private_directory.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/error.hpp"

namespace syslab::comm {

bool make_private_directory(const std::filesystem::path& directory) {
  if (::mkdir(directory.c_str(), 0700) == 0) return true;
  const int error = errno;
  if (error == EEXIST) return false;
  if (error == ENOENT && directory.has_parent_path() && directory.parent_path() != directory) {
    make_private_directory(directory.parent_path());
    if (::mkdir(directory.c_str(), 0700) == 0) return true;
    if (errno == EEXIST) return false;
    throw_errno(ErrorKind::comm, fmt::format("make the rendezvous directory '{}'", directory.string()), errno, "mkdir");
  }
  throw_errno(ErrorKind::comm, fmt::format("make the rendezvous directory '{}'", directory.string()), error, "mkdir");
}

void expect_private(const std::filesystem::path& directory) {
  struct stat there {};
  if (::stat(directory.c_str(), &there) != 0) {
    throw_errno(ErrorKind::comm, fmt::format("look at the directory '{}'", directory.string()), errno, "stat");
  }
  const bool ours = there.st_uid == ::geteuid();
  if (S_ISDIR(there.st_mode) && ours && (there.st_mode & 022) == 0) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("ranks cannot meet in '{}': it {}, and what ranks find there they believe; name a directory of "
                  "your own that only you may write to, or one that is not there yet",
                  directory.string(),
                  !S_ISDIR(there.st_mode) ? "is no directory"
                  : !ours ? fmt::format("belongs to user {}, and this is user {}", there.st_uid, ::geteuid())
                          : fmt::format("lets others write (mode {:03o})", there.st_mode & 0777)));
}

}  // namespace syslab::comm
