// Barriers in shared memory that count arrivals and bytes (PTX ISA, "mbarrier"; sm_90), as plain device functions.
//
// A barrier goes through phases. A phase ends when as many threads have arrived as init_barrier() said and, where
// arrive_expecting() named bytes, when copies have brought them. Waiting names the parity of a phase: 0 for the first,
// 1 for the second, and so on in turn. Waiting with parity 1 on a new barrier returns at once.
//
// What waits for what (landed, left: ptx.cuh). One barrier does one job, so a slot that is filled again and again has
// two of them:
//   full    landed   Whoever fills the slot arrives, with the bytes that TMA brings; readers wait().
//   empty   left     Readers arrive when they have read the slot; whoever fills it waits before overwriting it.
// arrive() releases what the calling thread did before it, and no more: a lane that arrives for its warp does so after
// a __syncwarp, if the other lanes used the slot by ordinary loads or stores. init_barrier() itself is seen by other
// threads after fence_barrier_init() and a barrier of the block.
#pragma once

#include <cstdint>

#include "device/cuda/delay.cuh"

namespace syslab::ptx {

// By one thread, before fence_barrier_init() and a barrier of the block.
__device__ __forceinline__ void init_barrier(std::uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Makes what init_barrier() wrote visible to the copy engine.
__device__ __forceinline__ void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void arrive(std::uint32_t barrier) {
  perhaps_delay<3>();
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrivals of a warp, or of a group of four, where one thread arrives for all. With SYSLAB_EACH_LANE (for debugging;
// tools/long/delayed_kernels.py) each thread arrives for itself. racecheck knows what the arriving thread itself did
// before, and not what a __syncwarp or a named barrier before the arrival ordered: what it no longer reports then was
// ordered by that.
#ifdef SYSLAB_EACH_LANE
inline constexpr int kArrivalsOfAWarp = 32, kArrivalsOfAGroup = 128;
#else
inline constexpr int kArrivalsOfAWarp = 1, kArrivalsOfAGroup = 1;
#endif

// Arrives, and the phase does not end before `bytes` were copied. A box of a tensor map counts in full, even where part
// of it lies outside the tensor.
__device__ __forceinline__ void arrive_expecting(std::uint32_t barrier, int bytes) {
  perhaps_delay<3>();
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Waits until the phase of this parity has ended. What was written before the arrivals, and what copies brought, can
// then be read. With SYSLAB_MOST_TRIES (for debugging) a wait of more tries ends the kernel with an error.
__device__ __forceinline__ void wait(std::uint32_t barrier, std::uint32_t parity) {
  perhaps_delay<2>();
#ifdef SYSLAB_MOST_TRIES
  int tries = 0;
#endif
  while (true) {
    std::uint32_t done;
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
        "selp.u32 %0, 1, 0, done;\n"
        "}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
    if (done != 0) return;
#ifdef SYSLAB_MOST_TRIES
    if (++tries > SYSLAB_MOST_TRIES) __trap();
#endif
  }
}

// A thread's position in a ring of kStages slots, each with barriers `full` and `empty` (above). The thread that fills
// waits for `empty` with other_parity(), so that the first round finds all slots free; readers wait for `full` with
// `parity`.
template <int kStages>
struct RingPosition {
  int stage = 0;
  std::uint32_t parity = 0;

  __device__ __forceinline__ std::uint32_t other_parity() const { return parity ^ 1; }
  __device__ __forceinline__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

}  // namespace syslab::ptx
