// FlashAttention-2's forward pass over planes (fp32/kernels.hpp), for either arithmetic.
//
// A block of four warps owns 64·kDown query rows, a warp 16·kDown of them: S and P never leave its registers. Q's
// blocks of A are loaded into registers once. K and V come in steps of kStep keys through two stages of shared memory:
// while one is computed with, cp.async fills the other; one barrier a step.
//
//   columns   rows of a block   keys a step   shared memory   registers (sm_90a, no spills)
//   16        128               64            24 KiB          220
//   32        128               64            48 KiB          255
//   64        64                64            80 KiB          255
//   128       64                16            64 KiB          255
//
// With kDown = 2 a warp reads half as much from shared memory for each product, and the small products can go first
// (Half3::multiply); at 64 columns that is 4 % faster at full occupancy, but ptxas spills, so it is not shipped.
//
// The softmax is in base 2 with scale·log2(e)·2^(scales of the two tiles) in one FFMA a score. P is then made 2^15
// times as large, so that its low halves are seldom subnormal. (Adding 15 to the exponent before would cost nothing,
// but its sum would be rounded at 8 to 15 rather than near 0: that was half of the whole error.) The product P·V of
// each step has accumulators of its own, which are added to O in fp32: O = α·O + 2^s·(P·V).
//
// Napkin maths (H100, D = 64): mma.sync gives some 620 TFLOP/s, three products to one leave 205 of the fp32 problem. A
// warp of 16 rows reads 2·kStep·256 bytes for 16·kStep·64·2·3 multiply-adds: shared memory is busy 83 % of that time.
// About 11 other instructions a score hide behind another warp's products. Expected 110 to 130; measured 107 (16 heads,
// S = 8192, all keys), 88 (one head, S = 16,384, causal).
//
// What waits for what (landed, left: device/cuda/ptx.cuh; the numbers stand in the code)
//
//   cp.async   One group a step, K and V; the first holds Q too. Every wait is for all copies: those of the next step
//              are queued behind (2), so only those of this step are under way. Empty commits have no effect.
//   (1) before the first step, block
//       landed   Each thread has waited for its own copies. Behind the barrier Q is whole, and each warp loads its
//                blocks of A.
//       left     Nothing is overwritten: Q's memory is used for nothing else.
//   (2) top of a step, block
//       landed   K and V of this step are whole for all warps.
//       left     All warps have finished the step before. The next copies fill the stage that it read.
//                (In the first step it has neither job: that was (1).)
//   (3) before every 16 keys of S and every 16 columns of O, warp
//       No job in memory: no lane reads what another has stored. It keeps the compiler from interleaving the loads of
//       neighbouring blocks, for which there are not enough registers: without it ptxas 13.0 spills 108 bytes at 128
//       columns (Half3). Remove it only with the registers and spills of all columns at hand.
//   After the last step nothing waits: results go from registers to memory that no other thread writes.
//   wait_for_kernels_before
//              landed   The planes.
//              left     Earlier kernels have read out and lse, or the join of an earlier call the partial results.
#pragma once

#include "ops/attention/fp32/arithmetic.cuh"
#include "ops/attention/fp32/kernels.hpp"
#include "ops/attention/fp32/plan.hpp"

namespace syslab::attention::fp32 {

template <int kColumns>
struct ForwardTile {
  static constexpr int kDown = kColumns <= 32 ? 2 : 1;
  static constexpr int kStep = forward_keys(kColumns);
  static constexpr int kRows = 16 * kWarps * kDown;
  static_assert(kRows == forward_rows(kColumns));
  static constexpr int kStage = 2 * kStep * 4 * kColumns;  // bytes of K and V
  static constexpr int kShared = kRows * 4 * kColumns + 2 * kStage;
};

// Stores two neighbours of a row, from column `column` on, but nothing beyond head_dim.
__device__ __forceinline__ void store_two(float* row, int column, int head_dim, bool pairs, float x, float y) {
  if (pairs && column + 1 < head_dim) {
    *reinterpret_cast<float2*>(row + column) = make_float2(x, y);
    return;
  }
  if (column < head_dim) row[column] = x;
  if (column + 1 < head_dim) row[column + 1] = y;
}

// The tile of queries of a block, and its chunk of their keys. Longest first: the last tile sees the most keys.
template <int kRows>
struct QueryBlock {
  int chunk, tile, head;  // of batch·heads_q

  template <typename Params>
  __device__ QueryBlock(const Params& params, int index) {
    const int tiles = (params.shape.seq_q + kRows - 1) / kRows;
    chunk = index % params.split.chunks;
    index /= params.split.chunks;
    tile = tiles - 1 - index % tiles;
    head = index / tiles;
  }
};

// blockIdx.x, read anew at every call, so that nothing computed from it is kept in registers across a loop: its
// products need them. (For threadIdx.x: ptx::thread_anew.)
__device__ __forceinline__ int block_index_anew() {
  int index = 0;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(index));
  return index;
}

template <class Arithmetic, int kColumns>
__global__ __launch_bounds__(kThreads, 2) void forward_kernel(const ForwardParams params) {
  using Config = ForwardTile<kColumns>;
  constexpr int kDown = Config::kDown, kStep = Config::kStep;
  constexpr int kAcross = kColumns / 16, kKeys = kStep / 16;
  constexpr int kRowBytes = 4 * kColumns;
  extern __shared__ __align__(128) char shared[];
  const std::uint32_t q_tile = ptx::shared_address(shared);
  const std::uint32_t stages = q_tile + Config::kRows * kRowBytes;

  const Shape& shape = params.shape;
  const QueryBlock<Config::kRows> block(params, static_cast<int>(blockIdx.x));
  const int head = block.head;
  const int head_kv = head / shape.heads_q * shape.heads_kv + head % shape.heads_q / shape.group;

  const int first_row = block.tile * Config::kRows, chunk = block.chunk;
  const Range keys = keys_of(shape, first_row, Config::kRows);
  constexpr int kStepsOfTile = kTileRows / kStep;
  const int begin = chunk * params.split.tiles * kStepsOfTile;
  int end = min(keys.end, (chunk + 1) * params.split.tiles) * kStepsOfTile;
  if (begin >= end && chunk > 0) return;
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();

  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_row = first_row + warp * 16 * kDown;
  const LaneOffsets<kColumns> offsets(lane);
  const int kv_tile = head_kv * (shape.padded_k / kTileRows);
  const std::int64_t q_row = static_cast<std::int64_t>(head) * shape.padded_q;
  const int q_exponent = params.q.scales[(q_row + warp_row) / kTileRows].exponent;

  const auto load_step = [&](int step) {
    const std::uint32_t stage = stages + (step & 1) * Config::kStage;
    // Addresses are computed anew each time: the products need the registers that would keep them.
    const std::int64_t at = (static_cast<std::int64_t>(kv_tile) * kTileRows + step * kStep) * kRowBytes;
    copy_linear_async<kStep * kRowBytes, kThreads>(stage, params.k.data + at);
    copy_linear_async<kStep * kRowBytes, kThreads>(stage + kStep * kRowBytes, params.v.data + at);
  };

  BlockA q[kDown][kAcross];
  float o[kDown][2 * kAcross][4] = {};
  float row_max[kDown][2], row_sum[kDown][2] = {};  // of rows lane/4 and lane/4 + 8; max in base 2
#pragma unroll
  for (int m = 0; m < kDown; ++m) row_max[m][0] = row_max[m][1] = -INFINITY;
  const int seen_by_all = shape.limit(warp_row);  // keys that all rows of the warp see

  if (begin < end) {
    copy_linear_async<Config::kRows * kRowBytes, kThreads>(q_tile, params.q.data + (q_row + first_row) * kRowBytes);
    load_step(begin);
    ptx::commit_copies();
    ptx::wait_copies<0>();
    __syncthreads();  // (1)
#pragma unroll
    for (int m = 0; m < kDown; ++m) {
#pragma unroll
      for (int d = 0; d < kAcross; ++d) {
        load_a<Arithmetic, kColumns>(q[m][d], q_tile, offsets, d, warp * kDown + m);
      }
    }
  }
  for (int step = begin; step < end; ++step) {
    ptx::wait_copies<0>();
    __syncthreads();  // (2)
    if (step + 1 < end) load_step(step + 1);
    ptx::commit_copies();
    const std::uint32_t k_tile = stages + (step & 1) * Config::kStage, v_tile = k_tile + kStep * kRowBytes;
    // S = Q·Kᵀ, 16 keys at a time.
    float s[kDown][2 * kKeys][4];
#pragma unroll
    for (int n = 0; n < kKeys; ++n) {
      __syncwarp();  // (3)
      float sums[kDown][2][4] = {};
      Arithmetic::template multiply<kDown, 1, kAcross>(
          sums, [&](int m, int d) -> const BlockA& { return q[m][d]; },
          [&](std::uint32_t(&r)[4], int part, int d, int) {
            load_b<Arithmetic, kColumns>(r, k_tile, offsets, part, d, n);
          });
#pragma unroll
      for (int m = 0; m < kDown; ++m) {
#pragma unroll
        for (int i = 0; i < 8; ++i) s[m][2 * n + i / 4][i % 4] = sums[m][i / 4][i % 4];
      }
    }

    const int first_key = step * kStep;
    if (first_key + kStep > seen_by_all) {
      const int thread = ptx::thread_anew();
      const int row = first_row + thread / 32 * 16 * kDown + thread % 32 / 4, column = first_key + thread % 4 * 2;
#pragma unroll
      for (int m = 0; m < kDown; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int left = shape.limit(row + 16 * m + i / 2 * 8) - column - i % 2;
#pragma unroll
          for (int n = 0; n < 2 * kKeys; ++n) {
            if (8 * n >= left) s[m][n][i] = -INFINITY;
          }
        }
      }
    }

    const int tile_of_step = kv_tile + first_key / kTileRows;
    const int exponent = q_exponent + params.k.scales[tile_of_step].exponent - 2 * kTop;
    float factor = shape.scale_log2 * power_of_two(exponent);
    factor = fminf(fmaxf(factor, 0x1p-126F), 0x1p127F);
    const float v_factor = power_of_two(params.v.scales[tile_of_step].exponent - 2 * kTop);

    BlockA p[kDown][kKeys];
    float alpha[kDown][2];
#pragma unroll
    for (int m = 0; m < kDown; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float most = -INFINITY;
#pragma unroll
        for (int n = 0; n < 2 * kKeys; ++n) most = fmaxf(most, fmaxf(s[m][n][2 * h], s[m][n][2 * h + 1]));
        const float next = fmaxf(row_max[m][h], ptx::quad_max(most) * factor);
        // A row that has seen nothing yet: any finite number in place of −∞ makes its weights 0.
        const float base = next == -INFINITY ? 0.0F : next;
        alpha[m][h] = ptx::exp2_approx(row_max[m][h] - base);
        row_max[m][h] = next;
        float sum = 0;
#pragma unroll
        for (int n = 0; n < 2 * kKeys; ++n) {
#pragma unroll
          for (int i = 2 * h; i < 2 * h + 2; ++i) {
            const float weight = ptx::exp2_approx(fmaf(s[m][n][i], factor, -base));
            sum += weight;
            s[m][n][i] = weight * kTopFactor;
          }
        }
        row_sum[m][h] = fmaf(row_sum[m][h], alpha[m][h], sum);
      }
#pragma unroll
      for (int n = 0; n < kKeys; ++n) Arithmetic::to_a(p[m][n], s[m][2 * n], s[m][2 * n + 1]);
    }

    // O = α·O + 2^s·(P·V), 16 columns at a time.
#pragma unroll
    for (int d = 0; d < kAcross; ++d) {
      __syncwarp();  // (3)
      float sums[kDown][2][4] = {};
      Arithmetic::template multiply<kDown, 1, kKeys>(
          sums, [&](int m, int n) -> const BlockA& { return p[m][n]; },
          [&](std::uint32_t(&r)[4], int part, int n, int) {
            Arithmetic::template load_summed_rows<kColumns>(r, v_tile, offsets, part, d, n);
          });
#pragma unroll
      for (int m = 0; m < kDown; ++m) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          float& sum = o[m][2 * d + i / 4][i % 4];
          sum = fmaf(sums[m][i / 4][i % 4], v_factor, sum * alpha[m][i % 4 / 2]);
        }
      }
    }
  }

  const QueryBlock<Config::kRows> done(params, block_index_anew());
  const int thread = ptx::thread_anew(), quad = thread % 4;
  const int batch = done.head / shape.heads_q, head_q = done.head % shape.heads_q;
  const int first_done = done.tile * Config::kRows + thread / 32 * 16 * kDown + thread % 32 / 4;
  const bool whole = params.split.chunks == 1;
  const std::int64_t partial_row =
      (static_cast<std::int64_t>(done.head) * params.split.chunks + done.chunk) * shape.padded_q;
#pragma unroll
  for (int m = 0; m < kDown; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = first_done + 16 * m + 8 * h;
      const float sum = ptx::quad_sum(row_sum[m][h]);
      const float inverse = sum == 0 ? 0.0F : 1.0F / sum;
      const float lse2 = sum == 0 ? -INFINITY : row_max[m][h] + log2f(sum);
      if (row >= shape.seq_q) continue;
      float* const to = whole ? params.out.at(batch, head_q, row) : params.partial + (partial_row + row) * kColumns;
      const int width = whole ? shape.head_dim : kColumns;
      const bool pairs = !whole || params.pairs;
#pragma unroll
      for (int n = 0; n < 2 * kAcross; ++n) {
        store_two(to, 8 * n + 2 * quad, width, pairs, o[m][n][2 * h] * inverse, o[m][n][2 * h + 1] * inverse);
      }
      if (quad == 0) {
        if (whole) {
          *params.lse.at(batch, head_q, row) = lse2 * 0.693147180559945F;
        } else {
          params.partial_lse[partial_row + row] = lse2;
        }
      }
    }
  }
}

}  // namespace syslab::attention::fp32
