// Two words at the beginning of the shared memory: by one the host releases a call, by the other the worker says that
// its outputs are complete. Both ends look at them without a system call, so that the host's clock around a call
// measures the call.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>

namespace syslab::worker {

class Doorbell {
 public:
  static constexpr std::size_t kBytes = 128;  // a cache line for each word

  explicit Doorbell(std::byte* memory)
      : released_(reinterpret_cast<std::uint32_t*>(memory)), done_(reinterpret_cast<std::uint32_t*>(memory + 64)) {}

  void reset() {
    word(released_).store(0);
    word(done_).store(0);
  }

  // The host's. `step` counts from 1.
  void release(std::uint32_t step) {
    word(released_).store(step);
    ::syscall(SYS_futex, released_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
  bool is_done() const { return word(done_).load() != 0; }

  // The worker's.
  void await(std::uint32_t step) const {
    const auto until = std::chrono::steady_clock::now() + kSpin;
    for (std::uint32_t seen = 0; (seen = word(released_).load()) != step;) {
      if (std::chrono::steady_clock::now() < until) continue;
      // Ends by itself now and then: a host that only writes the word is heard, too.
      const timespec longest{0, 1'000'000};
      ::syscall(SYS_futex, released_, FUTEX_WAIT, seen, &longest, nullptr, 0);
    }
  }
  void finish() { word(done_).store(1); }

 private:
  static constexpr std::chrono::milliseconds kSpin{2};

  static std::atomic_ref<std::uint32_t> word(std::uint32_t* at) { return std::atomic_ref<std::uint32_t>(*at); }

  std::uint32_t* released_;
  std::uint32_t* done_;
};

}  // namespace syslab::worker
