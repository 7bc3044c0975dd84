// What every fuzz target shares. A target hands bytes to one reader of what others wrote; the reader may refuse them
// with an Error that blames the input. Anything else that leaves it (another exception, a signal, a report of a
// sanitizer, a second without an answer) is a fault.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace syslab::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Calls, and takes refusals. `blames_us`: the reader reads our own files, so that it calls bad input an internal error.
template <typename Call>
void read_or_refuse(Call call, bool blames_us = false) {
  try {
    call();
  } catch (const Error& refusal) {
    if (refusal.kind() != ErrorKind::internal || blames_us) return;
    std::fprintf(stderr, "an internal error for bad input: %s\n", refusal.what());
    std::abort();
  }
}

// A file of this process with these bytes, in memory where the system has a folder for that. One name: a fuzzer tries
// thousands a second, one after the other. Its length is the same in all processes: what copies and compares it takes
// other ways with a longer one, and the same database reached 1,125 edges in one process and 1,124 in the next.
class InputFile {
 public:
  InputFile(std::string_view bytes, const char* extension)
      : InputFile(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), extension) {}
  InputFile(const std::uint8_t* data, std::size_t size, const char* extension) {
    const char* folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    path_ = std::string(folder) + "/syslab_fuzz_" + std::to_string(kManyProcesses + getpid()) + extension;
    const int descriptor = open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    const bool whole = descriptor >= 0 && write(descriptor, data, size) == static_cast<ssize_t>(size);
    if (!whole || close(descriptor) != 0) {
      std::perror(path_.c_str());
      std::_Exit(2);
    }
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile() { unlink(path_.c_str()); }

  const std::filesystem::path& path() const { return path_; }

 private:
  static constexpr int kManyProcesses = 10'000'000;  // more than a system numbers: Linux stops at 4,194,304
  std::filesystem::path path_;
};

}  // namespace syslab::fuzz
