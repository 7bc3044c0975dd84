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

// An order of work; a view, which owns nothing (device/stream.hpp has the owner). On the CPU work is done when the call
// returns and a Stream is only a token; on CUDA it holds a cudaStream_t as void*, which no header outside this room
// needs to know. A null handle on CUDA is the default stream of the current GPU.
struct Stream {
  Kind kind = Kind::cpu;
  void* handle = nullptr;
};

}  // namespace syslab::device
