#include "worker/wire/own_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "core/error.hpp"

namespace syslab::worker {
namespace {

// Moves `fd` above the standard streams (closed on exec) and puts `replacement` in its place.
FileDescriptor move_away(int fd, int replacement) {
  FileDescriptor moved(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!moved) throw_errno(ErrorKind::internal, "move a standard stream", errno, "fcntl");
  if (::dup2(replacement, fd) < 0) throw_errno(ErrorKind::internal, "replace a standard stream", errno, "dup2");
  return moved;
}

}  // namespace

OwnStreams::OwnStreams(int in, int out) : in_(in), out_(out) {
  if (in == STDIN_FILENO) {
    const FileDescriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!nothing) throw_errno(ErrorKind::internal, "open /dev/null", errno, "open");
    moved_in_ = move_away(in, nothing.get());
    in_ = moved_in_.get();
  }
  if (out == STDOUT_FILENO) {
    moved_out_ = move_away(out, STDERR_FILENO);
    out_ = moved_out_.get();
  }
}

}  // namespace syslab::worker
