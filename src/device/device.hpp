// Where a kernel runs, and the order its work is put in.
#pragma once

#include <string>

namespace syslab::device {

enum class Kind { cpu, cuda };

// One device of this process. `index` is CUDA's ordinal; the CPU has only 0.
struct Place {
  Kind kind = Kind::cpu;
  int index = 0;
  bool operator==(const Place&) const = default;
};

std::string to_string(Place place);  // "the CPU", "GPU 0"

// An order of work; a view, which owns nothing (device/stream.hpp has the owners).
//
// On CUDA it holds a cudaStream_t as void*, which no header outside this room needs to know; a null handle is the
// default stream of the current GPU.
//
// On the CPU a null handle is the plain stream: work is done when the call returns. Any other handle is a queue with a
// thread of its own, where enqueue() (device/queue.hpp) puts work, and copies and fills (device/memory.hpp) go by
// themselves. Kernels of the host know no queue: they run at once in the thread that calls them, so a call that belongs
// in a queue's order is enqueued whole. This room's own, frameworks' operations and models refuse a queue by
// expect_plain() with an Error(usage); rungs of `ops` leave the CPU's stream unread.
struct Stream {
  Kind kind = Kind::cpu;
  void* handle = nullptr;
};

}  // namespace syslab::device
