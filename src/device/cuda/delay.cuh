// Delays at random in a build for debugging, SYSLAB_DELAYS (tools/long/delayed_kernels.py), so that an order that no
// barrier makes is seldom kept. In other builds there are none.
//
// Warps that a barrier has brought together must part again, or what comes soon after it looks as if it were ordered: a
// copy that one thread queues takes longer to begin than the other warps take to write what it copies. So delays stand
// at mbarriers (mbarrier.cuh) and on both sides of a barrier, named or of the block (ptx.cuh, warpgroup.cuh), and each
// warp has its own.
#pragma once

#include <cstdint>

namespace syslab::ptx {

// One of 2^kLog2 calls, as the clock has it, takes up to 4 µs, the time of a few steps of a kernel, and one of sixteen
// of these up to 65 µs, in which others go through a whole ring. Lanes of a warp read the clock together and stay
// together.
template <int kLog2>
__device__ __forceinline__ void perhaps_delay() {
#ifdef SYSLAB_DELAYS
  std::uint32_t x;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(x));
  x = (x + threadIdx.x / 32 * 0x85EBCA6BU) * 0x9E3779B9U;  // warps that read it together part as well
  if (x >> (32 - kLog2) == 0) __nanosleep(x >> ((x >> 8 & 15) == 0 ? 16 - kLog2 : 20 - kLog2));
#endif
}

}  // namespace syslab::ptx
