// The block of a launch that finishes last goes on with what all of them left behind: no second kernel.
//
//   if (threadIdx.x == 0) before = arrive(counter);   // behind this thread's results, which the last block will read
//   …                                                 // the answer comes while the block does something else
//   if (is_last_block(before)) …                      // all threads; reads past L1 (__ldcg)
//
// Every block of the grid arrives once. A counter is 0 before a launch and again behind it: the arrival of the last
// block makes it so. It cannot lie in a workspace, whose content is anything at entry: who made it 0 first would be a
// node of its own before the kernel, as long as the second kernel that is saved. So counters are variables of the
// module, which CUDA makes 0 when it loads it, and each belongs for good to a place that a launch writes its result to:
// two launches that run at the same time write two places, whichever streams and graphs they are in.
#pragma once

#include <mutex>
#include <unordered_map>

namespace syslab::ops {

// By one thread of each block. What this thread wrote before, the last block sees. How many blocks came before it.
__device__ __forceinline__ unsigned arrive(unsigned* counter) {
  unsigned before;
  asm volatile("atom.release.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(__cvta_generic_to_global(counter)), "r"(gridDim.x - 1)
               : "memory");
  return before;
}

// By all threads of the block: a barrier. `before` is read of thread 0, which arrived.
__device__ __forceinline__ bool is_last_block(unsigned before) {
  const bool last = threadIdx.x == 0 && before == gridDim.x - 1;
  if (last) __threadfence();  // what the others wrote before they arrived is read behind this
  return __syncthreads_or(last ? 1 : 0) != 0;
}

// Which counter of an array belongs to which place in the memory of GPUs. Threads may ask at the same time.
class CountersOfPlaces {
 public:
  explicit CountersOfPlaces(int counters) : counters_(counters) {}

  // The same at each call; −1 when all belong to others.
  int of(const void* place) {
    const std::lock_guard lock(guard_);
    const auto known = of_place_.find(place);
    if (known != of_place_.end()) return known->second;
    const int next = static_cast<int>(of_place_.size());
    if (next == counters_) return -1;
    of_place_.emplace(place, next);
    return next;
  }

 private:
  const int counters_;
  std::mutex guard_;
  std::unordered_map<const void*, int> of_place_;
};

}  // namespace syslab::ops
