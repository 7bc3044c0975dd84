#include "tests/train/file_faults.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

namespace {

thread_local syslab::test::FileFault* armed = nullptr;

// The system's function of this name.
template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

namespace syslab::test {

FileFault::FileFault(int at, int error) : at_(at), error_(error) { armed = this; }
FileFault::~FileFault() { armed = nullptr; }

bool FileFault::meets(std::string call) {
  calls_.push_back(std::move(call));
  if (static_cast<int>(calls_.size()) != at_ + 1) return false;
  if (error_ == kKill) ::raise(SIGKILL);
  errno = error_;
  return true;
}

}  // namespace syslab::test

extern "C" {

ssize_t write(int descriptor, const void* bytes, size_t count) {
  if (armed != nullptr && armed->meets("write")) return -1;
  static const auto real = next<ssize_t(int, const void*, size_t)>("write");
  return real(descriptor, bytes, count);
}

int fallocate(int descriptor, int mode, off_t offset, off_t length) {
  if (armed != nullptr && armed->meets("fallocate")) return -1;
  static const auto real = next<int(int, int, off_t, off_t)>(sizeof(off_t) == 8 ? "fallocate64" : "fallocate");
  return real(descriptor, mode, offset, length);
}

int fsync(int descriptor) {
  if (armed != nullptr) {
    struct stat of {};
    const bool folder = ::fstat(descriptor, &of) == 0 && S_ISDIR(of.st_mode);
    if (armed->meets(folder ? "fsync folder" : "fsync")) return -1;
  }
  static const auto real = next<int(int)>("fsync");
  return real(descriptor);
}

int rename(const char* from, const char* to) noexcept {
  if (armed != nullptr && armed->meets("rename " + std::filesystem::path(to).filename().string())) return -1;
  static const auto real = next<int(const char*, const char*)>("rename");
  return real(from, to);
}

}  // extern "C"
