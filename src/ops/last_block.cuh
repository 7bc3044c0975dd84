// The block of a launch that finishes last goes on with what all of them left behind: no second kernel.
//
//   if (threadIdx.x == 0) before = arrive(arrivals);   // behind this thread's results, which the last block will read
//   …                                                  // the answer comes while the block does something else
//   if (is_last_block(arrivals, before)) …             // all threads; reads past L1 (__ldcg)
//
// Every block of the grid arrives once, at one of kLeaves counters, each in a line of memory of its own; who comes last
// there arrives at the root, and who comes last at the root is the last block. One counter for all would be one
// address: 2,048 blocks that end within 4 µs took 9 µs then (H200), as one address takes one arrival every few
// nanoseconds.
//
// Counters are 0 before a launch and again behind it: the arrival of the last makes them so. They cannot lie in a
// workspace, whose content is anything at entry: who made them 0 first would be a node of its own before the kernel, as
// long as the second kernel that is saved. So they are variables of the module, which CUDA makes 0 when it loads it,
// and belong for good to a place that a launch writes its result to: two launches that run at the same time write two
// places, whichever streams and graphs they are in.
#pragma once

#include <mutex>
#include <unordered_map>

namespace syslab::ops {

inline constexpr unsigned kLeaves = 32;

struct Arrivals {
  struct alignas(64) Counter {
    unsigned count;
  };
  Counter root, leaves[kLeaves];
};

// How many came before, of `blocks`; behind the last it begins again with 0. What this thread wrote or has seen before,
// the last one sees.
__device__ __forceinline__ unsigned count_in(unsigned* counter, unsigned blocks) {
  unsigned before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(__cvta_generic_to_global(counter)), "r"(blocks - 1)
               : "memory");
  return before;
}

// Blocks that arrive at the leaf of this one.
__device__ __forceinline__ unsigned blocks_of_leaf() {
  return (gridDim.x - blockIdx.x % kLeaves + kLeaves - 1) / kLeaves;
}

// By one thread of each block; what it gets is for is_last_block().
__device__ __forceinline__ unsigned arrive(Arrivals* arrivals) {
  return count_in(&arrivals->leaves[blockIdx.x % kLeaves].count, blocks_of_leaf());
}

// By all threads of the block: a barrier. `before` is read of thread 0, which arrived.
__device__ __forceinline__ bool is_last_block(Arrivals* arrivals, unsigned before) {
  bool last = false;
  if (threadIdx.x == 0 && before == blocks_of_leaf() - 1) {
    __threadfence();  // what the others of this leaf wrote before they arrived goes on to who is last of all
    const unsigned leaves = min(gridDim.x, kLeaves);
    last = count_in(&arrivals->root.count, leaves) == leaves - 1;
    if (last) __threadfence();  // what all wrote before they arrived is read behind this
  }
  return __syncthreads_or(last ? 1 : 0) != 0;
}

// Which counters of an array belong to which place in the memory of GPUs. Threads may ask at the same time.
class ArrivalsOfPlaces {
 public:
  explicit ArrivalsOfPlaces(int count) : count_(count) {}

  // The same at each call; −1 when all belong to others.
  int of(const void* place) {
    const std::lock_guard lock(guard_);
    const auto known = of_place_.find(place);
    if (known != of_place_.end()) return known->second;
    const int next = static_cast<int>(of_place_.size());
    if (next == count_) return -1;
    of_place_.emplace(place, next);
    return next;
  }

 private:
  const int count_;
  std::mutex guard_;
  std::unordered_map<const void*, int> of_place_;
};

}  // namespace syslab::ops
