// Where a kernel runs, and the order its work is put in.
#pragma once

namespace syslab::device {

enum class Kind { cpu, cuda };

// An order of work. On the CPU work is done when the call returns and a Stream is only a token; on CUDA it holds a
// cudaStream_t as void*, which no header outside this room needs to know.
struct Stream {
  Kind kind = Kind::cpu;
  void* handle = nullptr;
};

}  // namespace syslab::device
