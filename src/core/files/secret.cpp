#include "core/files/secret.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "core/error.hpp"
#include "core/files/state_folder.hpp"
#include "core/files/user_file.hpp"
#include "core/ids.hpp"
#include "core/process/process.hpp"

namespace syslab {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& file, std::string_view what, std::string_view remedy) {
  throw Error(ErrorKind::config, fmt::format("the key '{}' {}: {}", file.string(), what, remedy));
}

// Nothing where there is no file.
std::optional<Key> read(const fs::path& file) {
  // A FIFO must not make us wait, a link must not lead us elsewhere.
  const FileDescriptor opened(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!opened) {
    if (errno == ENOENT) return std::nullopt;
    if (errno == ELOOP) refuse(file, "is a symbolic link", "remove it; a new key is made at the next start");
    throw_errno(ErrorKind::config, fmt::format("read the key '{}'", file.string()), errno, "open");
  }
  struct stat there {};
  if (::fstat(opened.get(), &there) != 0) throw_errno(ErrorKind::config, "look at a key", errno, "fstat");
  if (there.st_uid != ::geteuid()) {
    refuse(file, fmt::format("belongs to user {}, and this is user {}", there.st_uid, ::geteuid()), "remove it");
  }
  if (!S_ISREG(there.st_mode) || there.st_size != static_cast<off_t>(sizeof(Key))) {
    refuse(file, fmt::format("is no plain file of {} bytes", sizeof(Key)),
           "remove it; a new key is made at the next start");
  }
  if ((there.st_mode & 077) != 0) {
    refuse(file, fmt::format("may be used by others (mode {:03o})", there.st_mode & 0777),
           "remove it; a new key is made at the next start");
  }
  Key key;
  if (::read(opened.get(), key.data(), key.size()) != static_cast<ssize_t>(key.size())) {
    throw_errno(ErrorKind::config, fmt::format("read the key '{}'", file.string()), errno, "read");
  }
  return key;
}

// Written whole under a name of its own, then linked: of several makers one is first, and all read that one's.
void make_secret(const fs::path& file) {
  const fs::path draft = fmt::format("{}.{}", file.string(), new_uuid7());
  const auto fail = [&](std::string_view action, const char* call) {
    const int error = errno;
    ::unlink(draft.c_str());
    throw_errno(kind_of_write_error(error, ErrorKind::config), fmt::format("{} '{}'", action, file.string()), error,
                call);
  };
  const FileDescriptor made(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!made) fail("make the key", "open");
  const Key key = random_key();
  if (::write(made.get(), key.data(), key.size()) != static_cast<ssize_t>(key.size())) fail("write the key", "write");
  if (::fsync(made.get()) != 0) fail("write the key", "fsync");
  if (::link(draft.c_str(), file.c_str()) != 0 && errno != EEXIST) fail("make the key", "link");
  ::unlink(draft.c_str());
}

}  // namespace

Key secret(std::string_view name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  if (name.empty() || !std::ranges::all_of(name, is_plain)) {
    throw Error(ErrorKind::internal, fmt::format("'{}' cannot name a key: letters, digits, '-' and '_' can", name));
  }
  const fs::path file = state_folder() / fmt::format("{}.key", name);
  if (const auto key = read(file)) return *key;
  make_secret(file);
  if (const auto key = read(file)) return *key;
  throw Error(ErrorKind::config, fmt::format("the key '{}' was removed while it was made: start again", file.string()));
}

}  // namespace syslab
