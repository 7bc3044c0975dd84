// The copy engine of sm_90 (TMA): boxes of a four-dimensional tensor, between global and shared memory, by one thread.
// A box outside the tensor is filled with zeros on the way in and left out on the way back. Maps are made on the host
// (tensor_map.hpp) and reach the kernel as a __grid_constant__ parameter.
//
// What waits for what (landed, left: ptx.cuh). Copies run in the async proxy, apart from ordinary loads and stores.
//   loads    landed   They count their bytes at an mbarrier (mbarrier.cuh); wait() there.
//            left     Nothing here: the destination must be free when the load is queued.
//   stores   landed   wait_stores(): global memory is written. (The end of the kernel does as much for later kernels.)
//            left     wait_stores_read(): shared memory was read, and may be overwritten or freed.
//   Both waits are for stores of the calling thread. What ordinary stores wrote to shared memory is seen by a copy only
//   after fence_async_proxy() by each thread that wrote it, and then a barrier with the thread that queues the copy.
#pragma once

#include <cstdint>

#include "device/cuda/tensor_map.hpp"

namespace syslab::ptx {

// Cache hints for the L2: other blocks will read the data again soon, or no block will.
inline constexpr std::uint64_t kKeepInL2 = 0x14F0000000000000, kPassThroughL2 = 0x12F0000000000000;

__device__ __forceinline__ void prefetch_map(const device::TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Counts the box's bytes at `barrier`. `to` is a multiple of the swizzle's period.
__device__ __forceinline__ void load_box(std::uint32_t to, const device::TensorMap& map, int column, int row, int head,
                                         int batch, std::uint32_t barrier, std::uint64_t hint) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(to),
      "l"(&map), "r"(column), "r"(row), "r"(head), "r"(batch), "r"(barrier), "l"(hint)
      : "memory");
}

__device__ __forceinline__ void store_box(const device::TensorMap& map, int column, int row, int head, int batch,
                                          std::uint32_t from) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3, %4}], [%5];" ::"l"(&map),
               "r"(column), "r"(row), "r"(head), "r"(batch), "r"(from)
               : "memory");
}

// `bytes` contiguous bytes, counted at `barrier`. `bytes` and both addresses are multiples of 16.
__device__ __forceinline__ void load_line(std::uint32_t to, const void* from, int bytes, std::uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}

// to[i] += from[i] for fp32 numbers of `bytes` in all, in no order; counts as one of this thread's stores.
__device__ __forceinline__ void add_line(float* to, std::uint32_t from, int bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to), "r"(from),
               "r"(bytes)
               : "memory");
}

// Groups this thread's stores; waits until they have read shared memory, which may then be overwritten.
__device__ __forceinline__ void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ __forceinline__ void wait_stores_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
// Waits until they are also written.
__device__ __forceinline__ void wait_stores() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// What this thread wrote to shared memory by ordinary stores is seen by the copy engine and by wgmma after the next
// barrier that this thread arrives at.
__device__ __forceinline__ void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Orders this thread's ordinary accesses and its copies, in global memory as well.
__device__ __forceinline__ void fence_async_proxy_everywhere() { asm volatile("fence.proxy.async;" ::: "memory"); }

}  // namespace syslab::ptx
