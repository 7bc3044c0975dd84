// Bytes from here to there: copies between host and GPUs, filling, and who owns a pointer. Everything takes a stream
// and is done in its order; on the CPU's plain stream it is done when the call returns.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/device.hpp"

namespace syslab::device {

// Copies between any two places (CUDA tells by the pointers where they are). From or to pageable host memory CUDA may
// wait for the copy; from and to pinned memory it does not, and the host must not touch the bytes before the stream is
// done with them. The ranges must not overlap.
void copy(void* to, const void* from, std::size_t bytes, Stream stream);
// The same, and waits until the bytes are there. Whatever was queued on `stream` before is done then too.
void copy_now(void* to, const void* from, std::size_t bytes, Stream stream);

// Every byte to `value` (its low 8 bits), as memset.
void fill_bytes(void* at, int value, std::size_t bytes, Stream stream);

// Where a pointer's memory is.
struct PointerInfo {
  Place place;           // GPU memory: of which GPU; everything else is the CPU's
  bool pinned = false;   // host memory that a GPU can reach and copy without waiting
  bool managed = false;  // moves between host and GPU by itself
};
// Never fails for memory that CUDA does not know: that is the host's. Null is too. Opens no driver and makes no
// context: in a process without one all memory is the host's.
PointerInfo pointer_info(const void* data);

struct MemoryUse {
  std::uint64_t free = 0, total = 0;  // bytes, of all processes
};
// Of a GPU as cudaMemGetInfo tells it, of the CPU as the system does.
MemoryUse memory_use(Place place);

}  // namespace syslab::device
