// Copies between host and GPUs, fills, and queries about pointers. Everything runs in the order of its stream; on the
// CPU's plain stream it is done when the call returns.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/device.hpp"

namespace syslab::device {

// Copies between any two places (CUDA derives them from the pointers). With pageable host memory CUDA may wait for the
// copy; with pinned memory it does not, and the host must not touch the bytes before the stream has finished with them.
// The ranges must not overlap.
void copy(void* to, const void* from, std::size_t bytes, Stream stream);
// The same, and waits for it, and so for all work queued on `stream` before.
void copy_now(void* to, const void* from, std::size_t bytes, Stream stream);

// Every byte to `value` (its low 8 bits), as memset.
void fill_bytes(void* at, int value, std::size_t bytes, Stream stream);

// Where a pointer's memory is.
struct PointerInfo {
  Place place;           // the GPU for GPU memory, otherwise the CPU
  bool pinned = false;   // host memory that a GPU can reach and copy without waiting
  bool managed = false;  // migrates between host and GPU automatically
};
// Memory that CUDA does not know, and null, counts as host memory. Opens no driver and creates no context: in a process
// without one, all memory is host memory.
PointerInfo pointer_info(const void* data);

struct MemoryUse {
  std::uint64_t free = 0, total = 0;  // bytes, of all processes
};
// For a GPU from cudaMemGetInfo, for the CPU from the system.
MemoryUse memory_use(Place place);

}  // namespace syslab::device
