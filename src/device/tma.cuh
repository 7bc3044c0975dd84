// The copy engine of sm_90 (TMA): boxes of a four-dimensional tensor, between global and shared memory, by one thread.
// A box outside the tensor is filled with zeros on the way in and left out on the way back. Maps are made on the host
// (tensor_map.hpp) and reach the kernel as a __grid_constant__ parameter.
#pragma once

#include <cstdint>

#include "device/tensor_map.hpp"

namespace syslab::ptx {

// What the L2 is to think of data: read again soon by other blocks, or by nobody.
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

// Of this thread's stores: until shared memory was read and may be written anew.
__device__ __forceinline__ void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ __forceinline__ void wait_stores_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

// What this thread wrote to shared memory by ordinary stores is seen by the copy engine and by wgmma after the next
// barrier.
__device__ __forceinline__ void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

}  // namespace syslab::ptx
