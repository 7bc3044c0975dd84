// The small kernels around flash_wgmma's backward pass, both bound by memory: statistics of rows and zeros before it,
// dQ from its fp32 sums after it.
//
// The sums of a tile of 64 queries have the layout of wgmma's accumulators (device/cuda/wgmma.cuh): for each part of
// kDqColumns columns, each warp that computes it and each eight of its columns, four numbers of each thread. With kept
// factors dQᵀ lies so, in parts of 32 queries.
//
// What waits for what (landed, left: device/cuda/ptx.cuh). Threads share no memory, so there is no barrier.
//   kernels, statistics   wait_for_kernels_before: landed O, dO and L; left: kernels before have read the workspace,
//                         which is overwritten (the gradient kernel of an earlier call may still be running).
//   kernels, gradient     wait_for_kernels_before: landed the sums of all blocks of the backward kernel; left: kernels
//                         before have read dQ, which is overwritten.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "core/error.hpp"
#include "device/cuda/overlap.cuh"
#include "ops/attention/wgmma/backward.cuh"
#include "ops/attention/wgmma/backward_wide.cuh"

namespace syslab::attention::wgmma {

inline constexpr int kRowsThreads = 256;

template <typename T, typename Pointer>
__device__ __forceinline__ T* row_of(const BasicRows<Pointer>& rows, int batch, int head, int row) {
  return static_cast<T*>(rows.data) + batch * rows.batch + head * rows.head + row * rows.row;
}

template <typename T>
__device__ __forceinline__ float dot_of_pairs(std::uint32_t a, std::uint32_t b) {
  const float2 x = ptx::unpack<T>(a), y = ptx::unpack<T>(b);
  return fmaf(x.x, y.x, x.y * y.y);
}

template <typename T, int kHeadDim>
__global__ void __launch_bounds__(kRowsThreads)
    flash_wgmma_statistics_kernel(const __grid_constant__ BackwardParams p) {
  constexpr int kLanes = kHeadDim == 64 ? 8 : kHeadDim == 128 ? 16 : 32, kRowsAtOnce = kRowsThreads / kLanes;
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  const int tile = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const int head = tile / p.query_tiles, first = (tile - head * p.query_tiles) * kBackwardQueries;
  const int batch = head / p.heads_q, head_of_batch = head - batch * p.heads_q;
  auto* zeros = reinterpret_cast<float4*>(p.dq_sums + static_cast<std::int64_t>(tile) * kBackwardQueries * kHeadDim);
#pragma unroll 4
  for (int i = thread; i < kBackwardQueries * kHeadDim / 4; i += kRowsThreads) zeros[i] = make_float4(0, 0, 0, 0);
  if (p.turns != nullptr && thread == 0) {
    p.turns[tile] = 0;
    if (tile == 0) p.turns[p.batch * p.heads_q * p.query_tiles] = 0;
  }
  const int lane = thread % kLanes;
#pragma unroll
  for (int i = 0; i < kBackwardQueries; i += kRowsAtOnce) {
    const int within = i + thread / kLanes, row = first + within;
    float delta = 0.0F;
    if (row < p.seq_q && lane * 8 < p.head_dim) {
      const uint4 x =
          *reinterpret_cast<const uint4*>(row_of<const T>(p.out_rows, batch, head_of_batch, row) + lane * 8);
      const uint4 y =
          *reinterpret_cast<const uint4*>(row_of<const T>(p.dout_rows, batch, head_of_batch, row) + lane * 8);
      delta =
          dot_of_pairs<T>(x.x, y.x) + dot_of_pairs<T>(x.y, y.y) + dot_of_pairs<T>(x.z, y.z) + dot_of_pairs<T>(x.w, y.w);
    }
#pragma unroll
    for (int other = 1; other < kLanes; other *= 2) delta += __shfl_xor_sync(~0U, delta, other);
    if (lane == 0) {
      constexpr float kLog2E = 1.4426950408889634F;
      const float lse =
          row < p.seq_q ? p.lse[batch * p.lse_batch + head_of_batch * p.lse_head + row * p.lse_row] : -INFINITY;
      const std::int64_t at = static_cast<std::int64_t>(tile) * kBackwardQueries + within;
      p.negated_lse[at] = lse == -INFINITY ? -INFINITY : -lse * kLog2E;
      p.negated_delta[at] = lse == -INFINITY ? 0.0F : -delta;
    }
  }
}

// A thread makes eight columns of two rows; eight neighbouring threads make 64 columns of the same rows. With kept
// factors it makes 16 columns, and four neighbouring threads make all 64.
template <typename T, typename Tile>
__global__ void __launch_bounds__(kRowsThreads) flash_wgmma_gradient_kernel(const __grid_constant__ BackwardParams p) {
  constexpr int kBlocks = Tile::kHeadDim / 8;  // of columns
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  const int tile = static_cast<int>(blockIdx.x);
  const int head = tile / p.query_tiles, first = (tile - head * p.query_tiles) * kBackwardQueries;
  const int batch = head / p.heads_q, head_of_batch = head - batch * p.heads_q;
  const float* sums = p.dq_sums + static_cast<std::int64_t>(tile) * kBackwardQueries * Tile::kHeadDim;
  const auto put = [&](int at, int block, const float(&value)[8]) {
    if (at >= p.seq_q || block * 8 >= p.head_dim) return;
    uint4 packed;
    packed.x = ptx::pack<T>(value[0] * p.scale, value[1] * p.scale);
    packed.y = ptx::pack<T>(value[2] * p.scale, value[3] * p.scale);
    packed.z = ptx::pack<T>(value[4] * p.scale, value[5] * p.scale);
    packed.w = ptx::pack<T>(value[6] * p.scale, value[7] * p.scale);
    *reinterpret_cast<uint4*>(row_of<T>(p.dq_rows, batch, head_of_batch, at) + block * 8) = packed;
  };
  if constexpr (Tile::kKeepsFactors) {
    const int thread = static_cast<int>(threadIdx.x), warp = thread % 4, query = thread / 4 * 2;
    if (query >= kBackwardQueries || first + query >= p.seq_q) return;
    const int part = query / 32, eight = query % 32 / 8;
    const auto* from = reinterpret_cast<const float4*>(sums) + ((part * 4 + warp) * 4 + eight) * 32 + query % 8 / 2;
    float4 x[8];  // of columns c and c + 8 of the warp's 16: two queries each
#pragma unroll
    for (int c = 0; c < 8; ++c) x[c] = from[c * 4];
    const int row = first + query, block = 2 * warp;
    put(row, block, {x[0].x, x[1].x, x[2].x, x[3].x, x[4].x, x[5].x, x[6].x, x[7].x});
    put(row, block + 1, {x[0].z, x[1].z, x[2].z, x[3].z, x[4].z, x[5].z, x[6].z, x[7].z});
    put(row + 1, block, {x[0].y, x[1].y, x[2].y, x[3].y, x[4].y, x[5].y, x[6].y, x[7].y});
    put(row + 1, block + 1, {x[0].w, x[1].w, x[2].w, x[3].w, x[4].w, x[5].w, x[6].w, x[7].w});
  } else {
#pragma unroll
    for (int i = static_cast<int>(threadIdx.x); i < kBlocks * 32; i += kRowsThreads) {
      const int pair = i / 8 % 32, block = i / 256 * 8 + i % 8;
      const int row = first + pair / 8 * 16 + pair % 8;
      if (row >= p.seq_q || block * 8 >= p.head_dim) continue;
      constexpr int kOfGroup = Tile::kDqColumns / 8;
      const int warp = block / kOfGroup * 4 + pair / 8;
      const auto* from =
          reinterpret_cast<const float4*>(sums) + (warp * kOfGroup + block % kOfGroup) * 32 + pair % 8 * 4;
      const float4 x[4] = {from[0], from[1], from[2], from[3]};
      put(row, block, {x[0].x, x[0].y, x[1].x, x[1].y, x[2].x, x[2].y, x[3].x, x[3].y});
      put(row + 8, block, {x[0].z, x[0].w, x[1].z, x[1].w, x[2].z, x[2].w, x[3].z, x[3].w});
    }
  }
}

template <int kIndex, bool kOrdered>
using BackwardTileOf = std::conditional_t<kBackwardTiles[kIndex].groups_by_product, WideBackwardTile<kIndex, kOrdered>,
                                          BackwardTile<kIndex, kOrdered>>;

template <typename T, typename Tile>
constexpr auto backward_kernel_of() {
  if constexpr (Tile::kShape.groups_by_product) {
    return flash_wgmma_wide_backward_kernel<T, Tile>;
  } else {
    return flash_wgmma_backward_kernel<T, Tile>;
  }
}

template <typename T, int kIndex>
void launch_backward(BackwardKernel kernel, const BackwardParams& params, device::Stream stream) {
  using Ordered = BackwardTileOf<kIndex, true>;
  using Free = BackwardTileOf<kIndex, false>;
  const dim3 tiles(static_cast<unsigned>(params.batch * params.heads_q * params.query_tiles));
  const bool in_order = params.turns != nullptr;
  const dim3 blocks(static_cast<unsigned>(params.batch * params.heads_kv * params.key_tiles));
  switch (kernel) {
    case BackwardKernel::statistics: {
      static device::OverlappedKernel statistics(flash_wgmma_statistics_kernel<T, Free::kHeadDim>, 0,
                                                 "flash_wgmma backward, statistics");
      return statistics.launch(tiles, kRowsThreads, stream, params);
    }
    case BackwardKernel::products: {
      static device::OverlappedKernel ordered(backward_kernel_of<T, Ordered>(), Ordered::kSharedBytes,
                                              "flash_wgmma backward, in order");
      static device::OverlappedKernel free(backward_kernel_of<T, Free>(), Free::kSharedBytes, "flash_wgmma backward");
      return (in_order ? ordered : free).launch(blocks, Free::kThreads, stream, params);
    }
    case BackwardKernel::gradient: {
      static device::OverlappedKernel gradient(flash_wgmma_gradient_kernel<T, Free>, 0,
                                               "flash_wgmma backward, gradient");
      return gradient.launch(tiles, kRowsThreads, stream, params);
    }
  }
}

// With the tile of this index, which must be the one named.
template <int kIndex>
void launch_backward_of(BackwardKernel kernel, int tile, DType dtype, const BackwardParams& params,
                        device::Stream stream) {
  if (tile != kIndex) throw Error(ErrorKind::internal, "flash_wgmma: a backward tile of another head_dim");
  if (dtype == DType::bf16) {
    launch_backward<__nv_bfloat16, kIndex>(kernel, params, stream);
  } else {
    launch_backward<__half, kIndex>(kernel, params, stream);
  }
}

}  // namespace syslab::attention::wgmma
