// Where a kernel runs, and the stream that orders its work.
#pragma once

#include <string>

#include "core/device_kind.hpp"

namespace syslab::device {

using Kind = DeviceKind;

// One device of this process. `index` is CUDA's ordinal; the CPU has only 0.
struct Place {
  Kind kind = Kind::cpu;
  int index = 0;
  bool operator==(const Place&) const = default;
};

std::string to_string(Place place);  // "the CPU", "GPU 0"

// A non-owning view of a stream (owners are in device/stream.hpp).
//
// On CUDA it holds a cudaStream_t as void*, so that other rooms need no CUDA header; a null handle is the default
// stream of the current GPU.
//
// On the CPU a null handle is the plain stream: work is done when the call returns. Any other handle is a queue with
// its own thread; enqueue() (device/queue.hpp) adds work to it, and copies and fills (device/memory.hpp) use it
// automatically. Host kernels ignore queues: they run at once in the calling thread, so a call that must be ordered by
// a queue is enqueued as a whole. Kernels of this room, framework operations and models refuse a queue by
// expect_plain() with Error(usage); rungs of `ops` do not read the CPU's stream.
struct Stream {
  Kind kind = Kind::cpu;
  void* handle = nullptr;
};

}  // namespace syslab::device
