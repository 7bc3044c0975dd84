// flash_mma, forward: FlashAttention-2 (Dao 2023, algorithm 1) on mma.sync and cp.async, for sm_80 and later.
//
// HOW DATA MOVES (a block: 4 or 8 warps, 32 to 128 query rows of one head)
//
//   Q ──cp.async──▶ shared ──ldmatrix──▶ A fragments (kept in registers where there is room)
//     for each tile of 32 to 128 keys, while the next one is being copied (two tiles of K and V in shared memory):
//       K ──ldmatrix──▶ B fragments ─mma─▶ scores, in registers: 16·row_tiles rows × the tile's keys a warp
//       scores → weights exp2(s·scale·log₂e − m), one multiply-add and one ex2 each; rounded to 16 bits they already
//         have the layout of the A fragments of the second product: P never leaves the registers
//       V ──ldmatrix.trans──▶ B fragments ─mma─▶ O, in registers
//     O/l ──through the warp's rows of Q's tile──▶ stored 16 bytes a lane; L = m·ln 2 + log l
//
//   All warps copy Q, K and V together: one barrier a tile. A wide warp (32 rows) uses each B fragment twice, so that
//   ldmatrix takes less time than the products (see below). Narrow warps (16 rows) give twice as many blocks. In a
//   short tile, several groups of warps have the same rows and take the keys in turn; their O, m and l are merged in
//   shared memory at the end: the same work, done sooner. mma/plan.hpp chooses among them, and whether the keys of a
//   row are split among several blocks; combine.cu then puts their results together.
//
// WHAT WAITS FOR WHAT (landed, left: device/cuda/ptx.cuh; the numbers stand in the code)
//
//   cp.async   One group a step, K and V; the first holds Q too. A group is committed in every step, if need be an
//              empty one: with at most kStages − 2 copy groups pending, the one of this step has arrived. With two
//              stages, which all shapes have today, nothing is pending; empty groups matter from three on.
//   (1) top of a step, block
//       landed   Each thread has waited for its own copies. Behind the barrier K and V of this step, in the first step
//                also Q, are whole for all warps.
//       left     All warps have finished the step before, and with it their reads of the stage that the next copies
//                fill. So the copies must come after the barrier, and one barrier a step is enough. A warp that skips a
//                tile still copies and reaches the barrier.
//   (2) after the last step. The wait is for Q if there was no step; otherwise only empty copy groups are pending.
//       The barrier, of the block, has three cases ("groups" are those of warps):
//       several groups, some keys   left: all groups have read K and V for the last time, which the merge overwrites,
//                                   and Q, which the first group overwrites with its results. (For Q
//                                   (3) would be enough.)
//       one group, no keys          landed: no step has waited for Q. All threads copy it, and a late copy of another
//                                   warp would overwrite the zeros that this warp stores through Q's rows.
//       several groups, no keys     landed: the same. (Here (3) alone would be enough.)
//       One group with keys needs none: Q landed at (1), nothing is still being copied into shared memory, and from
//       here on a warp touches only its own rows of Q, which no other warp of one group reads.
//   (3) merge of groups, block
//       landed   m, l and O of the other groups are there for the first, which adds them up.
//       left     Nothing: that is (2). The other groups end here, so a later barrier would count the first group only.
//   (4) before results go to Q's rows, warp
//       landed   Nothing.
//       left     All lanes have read their fragments of these rows. (ldmatrix and shuffles bring lanes together, but
//                do not order one lane's reads before another's stores.) Only one group with keys needs it: otherwise
//                (2) came after the last of these reads. Blocks with partial results return before it: from here on
//                they use no shared memory.
//   (5) after it, warp
//       landed   The rows are whole for the lanes that store them 16 bytes at a time.
//       left     Nothing is overwritten any more.
//   kernels    wait_for_kernels_before: landed Q, K and V; left: earlier kernels have read out, lse and the partial
//              results, which this one overwrites (the combine of the call before may still be running).
//              Blocks of later splits without keys end before the wait for the kernels before. That is allowed because
//              blocks of the first split always wait (device/cuda/overlap.cuh).
//
// THE MAXIMUM. Softmax needs some m near each row's maximum, not the maximum itself. We take the maximum of the first
// tile and use it for later tiles too. Only if a weight comes out larger than kSlack, the tile's scores are computed
// again and m is raised. That saves the running maximum (a comparison a score and eight shuffles a tile) and the
// rescaling of O. O and L do not depend on m. fp16 holds weights up to 65504; fp32 has more than enough range for sums.
//
// MASKS. Row r sees keys j ≤ r + shift: a block does not visit tiles beyond its last row, a warp skips tiles beyond
// its own last row, and masks only tiles that some row of the warp does not see whole. Blocks with the most keys come
// first.
//
// NAPKIN MATHS (H100, a multiprocessor; mma.sync reaches about 2560 flop a cycle, 62 % of wgmma; a score = 4·D flop)
//
//   cycles a score        D = 64   D = 128
//   products              0.100    0.200
//   ex2 (16 a cycle)      0.063    0.063    another pipe: hidden by products of other warps
//   ldmatrix (128 B)      0.063    0.156    hidden too (32 rows a warp; with 16, 0.125 and 0.31: the limit)
//   issue                 0.06     0.08     4.5 instructions of softmax a score, the products, ldmatrix
//   Perfect overlap would be 575 TFLOP/s at 1.7 GHz; FlashAttention-2 reaches 300–325 and 335–370. Measured:
//   docs/performance.md.
#pragma once

#include <cstdint>

#include "device/cuda/overlap.cuh"
#include "ops/attention/mma/kernels.hpp"
#include "ops/attention/mma/plan.hpp"
#include "ops/attention/mma/tile.cuh"

namespace syslab::attention::flash {

// A row of kForwardTiles as a type. (nvcc 13.0 writes host stubs that do not compile for template arguments of class
// type, so it is not a value.)
template <int kIndex>
struct ForwardTile {
  static constexpr ForwardTileShape kShape = kForwardTiles[kIndex];
  static constexpr int kHeadDim = kShape.head_dim, kWarps = kShape.warps, kRowTiles = kShape.row_tiles;
  static constexpr int kKeys = kShape.keys, kStages = kShape.stages, kBlocks = kShape.blocks;
  static constexpr bool kKeepQueries = kShape.keep_queries;
  static constexpr int kGroups = kShape.groups;
};

template <typename Tile>
struct ForwardSizes {
  static constexpr int kRows = Tile::kWarps * Tile::kRowTiles * 16, kThreads = Tile::kWarps * Tile::kGroups * 32;
  static constexpr int kStep = Tile::kGroups * Tile::kKeys;  // keys that all groups meet together
  static constexpr int kQueryBytes = 2 * Tile::kHeadDim * kRows;
  static constexpr int kKeyBytes = 2 * Tile::kHeadDim * 2 * Tile::kStages * kStep;
  // At the end K and V give their memory to O, m and l of all groups but the first, a column of floats for each thread.
  static constexpr int kFloatsOfLane = Tile::kRowTiles * (Tile::kHeadDim / 2 + 4);
  static constexpr int kMergeBytes = (Tile::kGroups - 1) * Tile::kWarps * 32 * kFloatsOfLane * 4;
  static constexpr int kSharedBytes = kQueryBytes + (kKeyBytes > kMergeBytes ? kKeyBytes : kMergeBytes);
};

inline constexpr float kLn2 = 0.6931471805599453F;
// A weight may be this many times that of the current maximum before the maximum is raised.
inline constexpr float kSlack = 1024.0F;

// The work of a block. Longest first: the last rows of a head see the most keys.
struct ForwardBlock {
  int batch, head, split, first_row;
  int begin, end;  // keys, those of the split that the block's last row sees
  bool partial;    // rows of this block have several splits
};

// Reads the block's place in the grid anew at every call, so that nothing of it is kept in registers between calls. Row
// blocks and splits of a head lie along x, heads along y and batches along z: without splits it takes no division.
template <int kRows>
__device__ __forceinline__ ForwardBlock forward_block(const ForwardParams& p) {
  ForwardBlock block;
  int item;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(item));
  asm volatile("mov.u32 %0, %%ctaid.y;" : "=r"(block.head));
  asm volatile("mov.u32 %0, %%ctaid.z;" : "=r"(block.batch));
  block.split = p.splits == 1 ? 0 : item / p.row_blocks;
  block.first_row = (p.row_blocks - 1 - (item - block.split * p.row_blocks)) * kRows;
  block.begin = block.split * p.keys_of_split;
  const int sees = max(0, min(min(block.first_row + kRows, p.seq_q) + p.shift, p.seq_k));
  block.end = p.splits == 1 ? sees : min(block.begin + p.keys_of_split, sees);
  block.partial = p.splits > 1 && sees > p.keys_of_split;
  return block;
}

// Stores O/l and L of a warp's rows, or partial results if their keys are split.
template <typename T, typename Tile>
__device__ __forceinline__ void store_rows(const ForwardParams& p, unsigned char* shared,
                                           float (&out)[Tile::kRowTiles][Tile::kHeadDim / 8][4],
                                           const float (&m)[Tile::kRowTiles][2], const float (&l)[Tile::kRowTiles][2]) {
  constexpr int kD = Tile::kHeadDim, kRowTiles = Tile::kRowTiles, kRows = ForwardSizes<Tile>::kRows;
  using Layout = SharedTile<kD>;
  const ForwardBlock block = forward_block<kRows>(p);
  const int batch = block.batch, head = block.head, first_row = block.first_row;
  const int head_index = batch * p.heads_q + head;
  const int lane = ptx::thread_anew() % 32, warp_row = ptx::thread_anew() / 32 % Tile::kWarps * kRowTiles * 16;
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float sum = l[i][h];
      const float inverse = sum > 0.0F ? 1.0F / sum : sum == 0.0F ? 0.0F : sum;  // NaN stays
      const int row = first_row + warp_row + i * 16 + h * 8 + lane / 4;
      const float natural = sum == 0.0F ? -INFINITY : (m[i][h] + log2f(sum)) * kLn2;
      if (row < p.seq_q && lane % 4 == 0) {
        if (block.partial) {
          p.partial_lse[(static_cast<std::int64_t>(block.split) * p.heads + head_index) * p.seq_q + row] = natural;
        } else {
          p.lse[batch * p.lse_stride.batch + head * p.lse_stride.head + row * p.lse_stride.row] = natural;
        }
      }
#pragma unroll
      for (int n = 0; n < kD / 8; ++n) {
        out[i][n][2 * h] *= inverse;
        out[i][n][2 * h + 1] *= inverse;
      }
      if (block.partial && row < p.seq_q) {
        float* to = p.partial_out +
                    ((static_cast<std::int64_t>(block.split) * p.heads + head_index) * p.seq_q + row) * p.head_dim;
#pragma unroll
        for (int n = 0; n < kD / 8; ++n) {
          if (n * 8 < p.head_dim) {
            *reinterpret_cast<float2*>(to + n * 8 + lane % 4 * 2) = {out[i][n][2 * h], out[i][n][2 * h + 1]};
          }
        }
      }
    }
  }
  if (block.partial) return;
  // Through the warp's own rows of the query tile, so that each lane stores 16 bytes at a time.
  __syncwarp();  // (4)
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
    for (int n = 0; n < kD / 8; ++n) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = warp_row + i * 16 + h * 8 + lane / 4;
        *reinterpret_cast<std::uint32_t*>(shared + Layout::offset(row, n) + lane % 4 * 4) =
            ptx::pack<T>(out[i][n][2 * h], out[i][n][2 * h + 1]);
      }
    }
  }
  __syncwarp();  // (5)
  T* to = static_cast<T*>(p.out) + batch * p.out_stride.batch + head * p.out_stride.head;
#pragma unroll
  for (int index = lane; index < kRowTiles * 16 * Layout::kChunks; index += 32) {
    const int row = warp_row + index / Layout::kChunks, chunk = index % Layout::kChunks;
    if (first_row + row < p.seq_q && chunk * 8 < p.head_dim) {
      *reinterpret_cast<uint4*>(to + (first_row + row) * p.out_stride.row + chunk * 8) =
          *reinterpret_cast<const uint4*>(shared + Layout::offset(row, chunk));
    }
  }
}

template <typename T, typename Tile>
__global__ void __launch_bounds__(ForwardSizes<Tile>::kThreads, Tile::kBlocks)
    flash_mma_forward_kernel(const __grid_constant__ ForwardParams p) {
  using Sizes = ForwardSizes<Tile>;
  constexpr int kD = Tile::kHeadDim, kKeys = Tile::kKeys, kRowTiles = Tile::kRowTiles, kStages = Tile::kStages;
  constexpr int kThreads = Sizes::kThreads, kRows = Sizes::kRows, kStep = Sizes::kStep, kGroups = Tile::kGroups;
  using Layout = SharedTile<kD>;
  extern __shared__ __align__(128) unsigned char shared[];

  const ForwardBlock block = forward_block<kRows>(p);
  const auto visible = [&](int row) { return max(0, min(row + 1 + p.shift, p.seq_k)); };
  const int first_row = block.first_row, begin = block.begin, end = block.end;
  if (block.split > 0 && begin >= end) return;
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();

  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32 % Tile::kWarps;
  const int group = kGroups == 1 ? 0 : static_cast<int>(threadIdx.x) / (32 * Tile::kWarps);
  const int batch = block.batch, head = block.head;
  const int kv_head = p.heads_of_kv == 1 ? head : head / p.heads_of_kv;
  const T* q = static_cast<const T*>(p.q) + batch * p.q_stride.batch + head * p.q_stride.head;
  const T* k = static_cast<const T*>(p.k) + batch * p.k_stride.batch + kv_head * p.k_stride.head;
  const T* v = static_cast<const T*>(p.v) + batch * p.v_stride.batch + kv_head * p.v_stride.head;

  const std::uint32_t q_tile = ptx::shared_address(shared);
  constexpr std::uint32_t kTileBytes = kStep * Layout::kRowBytes;
  const std::uint32_t k_tiles = q_tile + kRows * Layout::kRowBytes;
  const std::uint32_t v_tiles = k_tiles + kStages * kTileBytes;
  const auto copy_keys = [&](int first, int stage) {
    copy_tile_async<kStep, kD, kThreads>(k_tiles + stage * kTileBytes, k, p.k_stride.row, first, p.seq_k, p.head_dim);
    copy_tile_async<kStep, kD, kThreads>(v_tiles + stage * kTileBytes, v, p.v_stride.row, first, p.seq_k, p.head_dim);
  };

  copy_tile_async<kRows, kD, kThreads>(q_tile, q, p.q_stride.row, first_row, p.seq_q, p.head_dim);
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    if (begin + s * kStep < end) copy_keys(begin + s * kStep, s);
    ptx::commit_copies();
  }

  const int warp_row = warp * kRowTiles * 16;
  const std::uint32_t q_first = q_tile + warp_row * Layout::kRowBytes + Layout::rows_first(lane);
  const std::uint32_t of_group = group * kKeys * Layout::kRowBytes;
  const std::uint32_t k_first = of_group + Layout::columns_first(lane), v_first = of_group + Layout::rows_first(lane);
  std::uint32_t q_kept[Tile::kKeepQueries ? kRowTiles : 1][Tile::kKeepQueries ? kD / 16 : 1][4];
  float out[kRowTiles][kD / 8][4] = {};
  float m[kRowTiles][2] = {}, l[kRowTiles][2] = {};
  int stage = 0;
  for (int step = begin; step < end; step += kStep) {
    ptx::wait_copies<kStages - 2>();
    ptx::barrier_of_block();  // (1)
    {
      const int next = step + (kStages - 1) * kStep;
      if (next < end) copy_keys(next, stage == 0 ? kStages - 1 : stage - 1);
      ptx::commit_copies();
    }
    const std::uint32_t k_at = k_tiles + stage * kTileBytes + k_first, v_at = v_tiles + stage * kTileBytes + v_first;
    stage = stage == kStages - 1 ? 0 : stage + 1;
    if constexpr (Tile::kKeepQueries) {
      if (step == begin) {
#pragma unroll
        for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
          for (int d = 0; d < kD / 16; ++d) ptx::load_matrices(q_kept[i][d], Layout::block(q_first, d, i));
        }
      }
    }
    const int key = step + group * kKeys;
    const int warp_first = first_row + warp_row;
    if (key >= visible(min(warp_first + kRowTiles * 16, p.seq_q) - 1)) continue;

    float scores[kRowTiles][kKeys / 8][4];
    const auto score = [&] {
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
          for (int e = 0; e < 4; ++e) scores[i][n][e] = 0.0F;
        }
      }
#pragma unroll
      for (int d = 0; d < kD / 16; ++d) {
        std::uint32_t a[kRowTiles][4];
#pragma unroll
        for (int i = 0; i < kRowTiles; ++i) {
          if constexpr (Tile::kKeepQueries) {
#pragma unroll
            for (int e = 0; e < 4; ++e) a[i][e] = q_kept[i][d][e];
          } else {
            ptx::load_matrices(a[i], Layout::block(q_first, d, i));
          }
        }
#pragma unroll
        for (int n = 0; n < kKeys / 16; ++n) {
          std::uint32_t b[4];
          ptx::load_matrices(b, Layout::block(k_at, d, n));
#pragma unroll
          for (int i = 0; i < kRowTiles; ++i) {
            ptx::mma_16816<T>(scores[i][2 * n], a[i], b[0], b[1]);
            ptx::mma_16816<T>(scores[i][2 * n + 1], a[i], b[2], b[3]);
          }
        }
      }
      if (key + kKeys > visible(warp_first)) {
        const int row = ptx::thread_anew() % 32 / 4, column = ptx::thread_anew() % 4 * 2;
#pragma unroll
        for (int i = 0; i < kRowTiles; ++i) {
          // How many keys of this tile each of the lane's two rows sees, minus the lane's first column.
          int limit[2];
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            limit[h] = visible(warp_first + i * 16 + h * 8 + row) - key - column;
          }
#pragma unroll
          for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              if (n * 8 + e % 2 >= limit[e / 2]) scores[i][n][e] = p.hidden_score;
            }
          }
        }
      }
    };
    // Replaces scores by weights; `sum` is their sum over this tile.
    const auto weigh = [&](float(&sum)[kRowTiles][2]) {
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
        sum[i][0] = sum[i][1] = 0.0F;
#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            scores[i][n][e] = ptx::exp2_approx(fmaf(scores[i][n][e], p.scale_log2, -m[i][e / 2]));
            sum[i][e / 2] += scores[i][n][e];
          }
        }
      }
    };
    // After the first tile only for the rows in `which`, bit 2·i + h, not for all of the warp: the result of a row then
    // depends only on the keys that it sees.
    const auto raise = [&](std::uint32_t which) {
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          float most = -INFINITY;
#pragma unroll
          for (int n = 0; n < kKeys / 8; ++n) {
            most = fmaxf(most, fmaxf(scores[i][n][2 * h] * p.scale_log2, scores[i][n][2 * h + 1] * p.scale_log2));
          }
          most = ptx::quad_max(most);
          if (step == begin) {
            m[i][h] = most == -INFINITY ? 0.0F : most;
          } else if ((which >> (2 * i + h) & 1) != 0 && most > m[i][h]) {
            const float factor = ptx::exp2_approx(m[i][h] - most);
            m[i][h] = most;
            l[i][h] *= factor;
#pragma unroll
            for (int n = 0; n < kD / 8; ++n) {
              out[i][n][2 * h] *= factor;
              out[i][n][2 * h + 1] *= factor;
            }
          }
        }
      }
    };

    float sum[kRowTiles][2];
    bool look = step == begin;
    std::uint32_t too_large = 0;
    while (true) {
      score();
      if (look) raise(too_large);
      weigh(sum);
      float most = 0.0F;
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) most = fmaxf(most, fmaxf(sum[i][0], sum[i][1]));
      if (look || !__any_sync(~0U, most > kSlack)) break;
      look = true;
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          if (ptx::quad_max(sum[i][h]) > kSlack) too_large |= 1U << (2 * i + h);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
      l[i][0] += sum[i][0];
      l[i][1] += sum[i][1];
    }
#pragma unroll
    for (int s = 0; s < kKeys / 16; ++s) {
      std::uint32_t a[kRowTiles][4];
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          a[i][e] = ptx::pack<T>(scores[i][2 * s + e / 2][e % 2 * 2], scores[i][2 * s + e / 2][e % 2 * 2 + 1]);
        }
      }
#pragma unroll
      for (int n = 0; n < kD / 16; ++n) {
        std::uint32_t b[4];
        ptx::load_matrices_transposed(b, Layout::block(v_at, n, s));
#pragma unroll
        for (int i = 0; i < kRowTiles; ++i) {
          ptx::mma_16816<T>(out[i][2 * n], a[i], b[0], b[1]);
          ptx::mma_16816<T>(out[i][2 * n + 1], a[i], b[2], b[3]);
        }
      }
    }
  }
  ptx::wait_copies<0>();
  if (kGroups > 1 || end <= begin) ptx::barrier_of_block();  // (2)

#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) l[i][h] = ptx::quad_sum(l[i][h]);  // each lane of a quad has a part of the row
  }
  if constexpr (kGroups > 1) {
    float* const merge =
        reinterpret_cast<float*>(shared + Sizes::kQueryBytes) + warp * 32 * Sizes::kFloatsOfLane + lane;
    constexpr int kGroupFloats = Tile::kWarps * 32 * Sizes::kFloatsOfLane;
    if (group > 0) {
      float* to = merge + (group - 1) * kGroupFloats;
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          *to = m[i][h];
          to[32] = l[i][h];
          to += 64;
        }
#pragma unroll
        for (int n = 0; n < kD / 8; ++n) {
#pragma unroll
          for (int e = 0; e < 4; ++e, to += 32) *to = out[i][n][e];
        }
      }
    }
    ptx::barrier_of_block();  // (3)
    if (group > 0) return;
#pragma unroll 1
    for (int other = 0; other < kGroups - 1; ++other) {
      const float* from = merge + other * kGroupFloats;
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
        float ours[2], theirs[2];
#pragma unroll
        for (int h = 0; h < 2; ++h, from += 64) {
          const float their_m = *from, their_l = from[32];
          // A group that saw no key of the row does not count in m.
          const float most = their_l == 0.0F ? m[i][h] : l[i][h] == 0.0F ? their_m : fmaxf(m[i][h], their_m);
          ours[h] = l[i][h] == 0.0F ? 0.0F : ptx::exp2_approx(m[i][h] - most);
          theirs[h] = their_l == 0.0F ? 0.0F : ptx::exp2_approx(their_m - most);
          m[i][h] = most;
          l[i][h] = l[i][h] * ours[h] + their_l * theirs[h];
        }
#pragma unroll
        for (int n = 0; n < kD / 8; ++n) {
#pragma unroll
          for (int e = 0; e < 4; ++e, from += 32) {
            out[i][n][e] = out[i][n][e] * ours[e / 2] + *from * theirs[e / 2];
          }
        }
      }
    }
  }
  store_rows<T, Tile>(p, shared, out, m, l);
}

template <typename T, typename Tile>
void launch_forward(const ForwardParams& params, device::Stream stream) {
  using Sizes = ForwardSizes<Tile>;
  static device::OverlappedKernel kernel(flash_mma_forward_kernel<T, Tile>, Sizes::kSharedBytes, "flash_mma forward");
  const dim3 blocks(static_cast<unsigned>(params.row_blocks * params.splits), static_cast<unsigned>(params.heads_q),
                    static_cast<unsigned>(params.heads / params.heads_q));
  kernel.launch(blocks, Sizes::kThreads, stream, params);
}

// Launches the tile of this index, which must be one of those named.
template <int... kIndices>
void launch_forward_of(int tile, DType dtype, const ForwardParams& params, device::Stream stream) {
  const auto try_one = [&]<int kIndex>(std::integral_constant<int, kIndex>) {
    if (tile != kIndex) return false;
    if (dtype == DType::bf16) {
      launch_forward<__nv_bfloat16, ForwardTile<kIndex>>(params, stream);
    } else {
      launch_forward<__half, ForwardTile<kIndex>>(params, stream);
    }
    return true;
  };
  if (!(try_one(std::integral_constant<int, kIndices>{}) || ...)) {
    throw Error(ErrorKind::internal, "flash_mma: a tile of another head_dim");
  }
}

}  // namespace syslab::attention::flash
