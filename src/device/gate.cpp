#include "device/gate.hpp"

#include <atomic>

#include "device/cuda/kernels.hpp"
#include "device/cuda/launch.hpp"
#include "device/stream.hpp"

namespace syslab::device {

Gate::Gate(Stream stream, Nanoseconds limit) : stream_(stream), limit_(limit) {
  if (stream.kind == Kind::cpu) return;
  words_ = Buffer::pinned(2 * sizeof(std::uint64_t), "gate", place_of(stream));
  words_.as<std::uint64_t>()[0] = words_.as<std::uint64_t>()[1] = 0;
}

Gate::~Gate() {
  if (stream_.kind == Kind::cpu) return;
  open();
  try {
    synchronize(stream_);  // the words must outlive the kernels that read them
  } catch (...) {          // the GPU has failed: nothing reads them any more
  }
}

void Gate::close() {
  if (stream_.kind == Kind::cpu) return;
  const CurrentDevice current(stream_);
  auto* words = words_.as<std::uint64_t>();
  kernels::wait_for_ticket(words, ++closed_, static_cast<std::uint64_t>(limit_.count()), words + 1, stream_);
}

void Gate::open() noexcept {
  if (stream_.kind == Kind::cpu) return;
  std::atomic_ref(words_.as<std::uint64_t>()[0]).store(closed_, std::memory_order_release);
}

std::uint64_t Gate::expired() const {
  if (stream_.kind == Kind::cpu) return 0;
  return std::atomic_ref(words_.as<std::uint64_t>()[1]).load(std::memory_order_acquire);
}

}  // namespace syslab::device
