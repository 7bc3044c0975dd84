// flash_wgmma, backward: what computing groups of either kind do (wgmma/backward.cuh, wgmma/backward_wide.cuh), 64 keys
// by 64 queries a step. What waits for what stands there; here only arrive_for_warp() waits, for the lanes of its
// warp.
#pragma once

#include <cstdint>

#include "device/cuda/mbarrier.cuh"
#include "device/cuda/ptx.cuh"
#include "device/cuda/warpgroup.cuh"
#include "device/cuda/wgmma.cuh"
#include "ops/attention/wgmma/backward_kernels.hpp"

namespace syslab::attention::wgmma {

// One arrival for a warp, whose lanes have used the slot in ordinary ways.
__device__ __forceinline__ void arrive_for_warp(std::uint32_t barrier) {
  __syncwarp();
  if (ptx::kArrivalsOfAWarp > 1 || ptx::lane_anew() == 0) ptx::arrive(barrier);
}

// Sᵀ or dPᵀ, 64 keys × 64 queries, a group of products. Both factors are descriptors.
template <typename T, typename Tile>
__device__ __forceinline__ void queue_transposed_scores(float (&to)[Tile::kQueries / 8][4], std::uint64_t keys,
                                                        std::uint64_t queries) {
  ptx::forget<Tile::kQueries>(to);
  ptx::fence_products();
#pragma unroll
  for (int d = 0; d < Tile::kHeadDim / 16; ++d) {
    const int panel = d / Tile::kStepsOfPanel, within = d % Tile::kStepsOfPanel * 32;
    ptx::Product<Tile::kQueries>::template of_shared<T>(to, ptx::at(keys, panel * Tile::kKeyPanelBytes + within),
                                                        ptx::at(queries, panel * Tile::kQueryPanelBytes + within),
                                                        d > 0);
  }
  ptx::commit_products();
}

// The same with K or V in registers, as keep_rows() leaves it.
template <typename T, typename Tile>
__device__ __forceinline__ void queue_transposed_scores(float (&to)[Tile::kQueries / 8][4],
                                                        const std::uint32_t (&keys)[Tile::kHeadDim / 16][4],
                                                        std::uint64_t queries) {
  ptx::forget<Tile::kQueries>(to);
  ptx::fence_products();
#pragma unroll
  for (int d = 0; d < Tile::kHeadDim / 16; ++d) {
    const int panel = d / Tile::kStepsOfPanel, within = d % Tile::kStepsOfPanel * 32;
    ptx::Product<Tile::kQueries>::template of_registers_along<T>(
        to, keys[d], ptx::at(queries, panel * Tile::kQueryPanelBytes + within), d > 0);
  }
  ptx::commit_products();
}

// 64 rows of K or V, 16 a warp, from the layout that TMA wrote to registers, as the factor A must lie. `from` is where
// the first of them begins.
template <typename Tile>
__device__ __forceinline__ void keep_rows(std::uint32_t (&kept)[Tile::kHeadDim / 16][4], std::uint32_t from) {
  const int row = 16 * (ptx::thread_anew() / 32 % 4) + ptx::lane_anew() % 16, half = ptx::lane_anew() / 16;
#pragma unroll
  for (int d = 0; d < Tile::kHeadDim / 16; ++d) {
    const int panel = d / Tile::kStepsOfPanel, chunk = d % Tile::kStepsOfPanel * 2 + half;
    ptx::load_matrices(kept[d],
                       from + panel * Tile::kKeyPanelBytes + row * Tile::kRowBytes + ((chunk ^ (row % 8)) << 4));
  }
}

// The same of Kᵀ, of all keys of the block: its rows are the 64 columns of K, 16 a warp. `from` is where K begins.
template <typename Tile>
__device__ __forceinline__ void keep_transposed(std::uint32_t (&kept)[Tile::kKeys / 16][4], std::uint32_t from) {
  const int matrix = ptx::lane_anew() / 8, key = ptx::lane_anew() % 8 + 8 * (matrix / 2);
  const int chunk = 2 * (ptx::thread_anew() / 32 % 4) + matrix % 2;
#pragma unroll
  for (int s = 0; s < Tile::kKeys / 16; ++s) {
    ptx::load_matrices_transposed(kept[s], from + (16 * s + key) * Tile::kRowBytes + ((chunk ^ (key % 8)) << 4));
  }
}

// Adds to dK or dV, 64 keys × head_dim, a group of products of at most kSumColumns columns.
template <typename T, typename Tile, int kFirst = 0>
__device__ __forceinline__ void queue_sum_of_columns(float (&to)[Tile::kHeadDim / 8][4],
                                                     const std::uint32_t (&bits)[Tile::kQueries / 16][4],
                                                     std::uint64_t queries) {
  constexpr int kLeft = Tile::kHeadDim - kFirst, kColumns = kLeft < Tile::kSumColumns ? kLeft : Tile::kSumColumns;
  const std::uint64_t panel = ptx::at(queries, kFirst / Tile::kPanelColumns * Tile::kQueryPanelBytes);
  auto& part = reinterpret_cast<float(&)[kColumns / 8][4]>(to[kFirst / 8]);
#pragma unroll
  for (int s = 0; s < Tile::kQueries / 16; ++s) {
    ptx::Product<kColumns>::template of_registers<T>(part, bits[s], ptx::at(panel, s * 16 * Tile::kRowBytes));
  }
  if constexpr (kColumns < kLeft) queue_sum_of_columns<T, Tile, kFirst + kColumns>(to, bits, queries);
}
template <typename T, typename Tile>
__device__ __forceinline__ void queue_sum_over_queries(float (&to)[Tile::kHeadDim / 8][4],
                                                       const std::uint32_t (&bits)[Tile::kQueries / 16][4],
                                                       std::uint64_t queries) {
  ptx::fence_products();
  queue_sum_of_columns<T, Tile>(to, bits, queries);
  ptx::commit_products();
}

// P in place of S, of 64 keys from first_key on and 64 queries from first_row on. `lse` is where −L·log₂e of these
// queries lies in shared memory.
template <typename Tile>
__device__ __forceinline__ void weigh(float (&scores)[Tile::kQueries / 8][4], const BackwardParams& p,
                                      std::uint32_t lse, int first_key, int first_row) {
  constexpr int kQueries = Tile::kQueries;
  const std::uint32_t rows = lse + ptx::lane_anew() % 4 * 8;
#pragma unroll
  for (int n = 0; n < kQueries / 8; ++n) {
    const float2 of_pair = ptx::load_shared_pair(rows + n * 32);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      scores[n][e] = ptx::exp2_approx(fmaf(scores[n][e], p.scale_log2, e % 2 == 0 ? of_pair.x : of_pair.y));
    }
  }
  if (first_key + 63 <= min(first_row + p.shift, p.seq_k - 1)) return;
  const int key = first_key + 16 * (ptx::thread_anew() / 32 % 4) + ptx::lane_anew() / 4;  // and that + 8
  int limit[2];  // the first of this thread's columns that sees the key
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    limit[h] = (key + 8 * h < p.seq_k ? key + 8 * h - p.shift - first_row : 2 * kQueries) - ptx::lane_anew() % 4 * 2;
  }
#pragma unroll
  for (int n = 0; n < kQueries / 8; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if (n * 8 + e % 2 < limit[e / 2]) scores[n][e] = 0.0F;
    }
  }
}

// dK or dV of a group in the layout that TMA stores, packed; `to` is where its first row begins.
template <typename T, typename Tile>
__device__ __forceinline__ void store_tile(const float (&value)[Tile::kHeadDim / 8][4], float factor,
                                           std::uint32_t to) {
  constexpr int kChunks = Tile::kRowBytes / 16;
  const int row = 16 * (ptx::thread_anew() / 32 % 4) + ptx::lane_anew() % 16, half = ptx::lane_anew() / 16;
#pragma unroll
  for (int n = 0; n < Tile::kHeadDim / 8; n += 2) {
    const int chunk = n % kChunks + half;
    const std::uint32_t words[4] = {ptx::pack<T>(value[n][0] * factor, value[n][1] * factor),
                                    ptx::pack<T>(value[n][2] * factor, value[n][3] * factor),
                                    ptx::pack<T>(value[n + 1][0] * factor, value[n + 1][1] * factor),
                                    ptx::pack<T>(value[n + 1][2] * factor, value[n + 1][3] * factor)};
    ptx::store_matrices(to + n / kChunks * Tile::kKeyPanelBytes + row * Tile::kRowBytes + ((chunk ^ (row % 8)) << 4),
                        words);
  }
}

}  // namespace syslab::attention::wgmma
