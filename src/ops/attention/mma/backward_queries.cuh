// The queries kernel of flash_mma's deterministic backward pass: dQ of a tile of queries, and δ of its rows for the
// keys kernel that comes after.
//
// What it teaches: two more products (S and dP once again) instead of atomic additions. It is the forward kernel with
// another last product. Queries lie along the rows of the accumulators, so dS is in registers exactly as mma takes its
// left operand for dQ += dS·K: a warp needs nothing from other warps, and stores only the gradient, in 16 bits. Q and
// dO stay in registers as fragments (`held`), so that shared memory is read only for K and V.
//
// Napkin maths, a block of 128 queries × 64 keys, D = 64, clocks as in mma/backward_keys.cuh: products 1210,
// ldmatrix 770. Together with the keys kernel without dQ (1610 and 1540) that is 7 products where 5 count: at most 420
// TFLOP/s if only products took time. Seen: 270.
//
// What waits for what (landed, left: device/cuda/ptx.cuh; the numbers stand in the code)
//
//   cp.async   One group a step: K and V. The first holds Q and dO too.
//   (1) before the first step, block; also where there is no step
//       landed   Each thread has waited for its own copies. Behind the barrier Q, dO and the first K and V are whole
//                for all warps. Statistics of a warp's rows, which some of its lanes have stored, can be read by all
//                its lanes.
//       left     Nothing: the copies that follow fill a second stage that was not used yet.
//   (2) top of every later step, block
//       landed   K and V of this step are whole for all warps.
//       left     All warps have finished the step before. With two stages, the next copies fill the stage that it read.
//   (3) end of a step, one stage, block
//       landed   Nothing: that is (2).
//       left     All warps have read K and V for the last time. The next copies fill the only stage.
//   (4) before dQ goes to Q's rows, warp
//       landed   Nothing.
//       left     All lanes have read their fragments of these rows, which no other warp reads.
//   (5) before dQ is stored to global memory, block
//       landed   dQ of all warps: a thread takes 16 bytes of any row.
//       left     Nothing is overwritten any more.
//   kernels    Ordinary launches: the keys kernel, which reads the statistics stored here, starts when this one has
//              ended.
#pragma once

#include "ops/attention/mma/backward.cuh"

namespace syslab::attention::flash {

// Byte offsets in shared memory.
template <typename Tiles>
struct QueriesShared {
  static constexpr QueriesTile kTile = Tiles::kQueries;
  using Rows = SharedTile<kTile.head_dim>;
  static constexpr int kQ = 0;
  static constexpr int kDout = kTile.queries * Rows::kRowBytes;
  static constexpr int kStatistics = 2 * kDout;
  static constexpr int kStages = kStatistics + kTile.queries * 8;
  static constexpr int kK = 0;  // inside a stage
  static constexpr int kV = kTile.keys * Rows::kRowBytes;
  static constexpr int kStage = 2 * kV;
  static constexpr int kBytes = kStages + kTile.stages * kStage;
};

template <typename T, typename Tiles>
__global__ void __launch_bounds__(Tiles::kQueries.threads(), Tiles::kQueries.blocks)
    queries_kernel(const __grid_constant__ BackwardParams p) {
  using Shared = QueriesShared<Tiles>;
  using Rows = typename Shared::Rows;
  constexpr QueriesTile kTile = Shared::kTile;
  constexpr int kThreads = kTile.threads();
  constexpr int kD = kTile.head_dim, kKeys = kTile.keys, kQueries = kTile.queries, kAtOnce = kTile.at_once;
  constexpr int kWarpRows = kQueries / kTile.warps;
  constexpr int kRowBlocks = kWarpRows / 16, kKeyBlocks = kAtOnce / 8, kDepth = kD / 16;
  constexpr bool kIsHeld = kTile.held;

  extern __shared__ __align__(1024) std::uint8_t shared[];
  const std::uint32_t base = ptx::shared_address(shared);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp_row = ptx::uniform(static_cast<int>(threadIdx.x / 32)) * kWarpRows;

  // Which queries of which head, and which steps. Descending under a causal mask: longest blocks first.
  const int tiles = (p.seen.seq_q + kQueries - 1) / kQueries;
  const int heads = static_cast<int>(blockIdx.x) / tiles;
  const int first_row = ptx::uniform((tiles - 1 - static_cast<int>(blockIdx.x) % tiles) * kQueries);
  const int b = ptx::uniform(heads / p.heads_q), h = ptx::uniform(heads % p.heads_q);
  const int h_kv = ptx::uniform(h / p.seen.group);
  const int part = static_cast<int>(blockIdx.y);
  const int steps = steps_of_queries(p.seen, first_row, kQueries, kKeys);
  const int begin = part * p.queries_steps;
  const int end = p.queries_steps == 0 ? steps : min(steps, begin + p.queries_steps);
  if (part > 0 && begin >= end) return;

  const auto copy_step = [&](int stage, int step) {
    const std::uint32_t to = base + Shared::kStages + stage * Shared::kStage;
    copy_rows_async<T, kKeys, kD, kThreads>(to + Shared::kK, p.k, b, h_kv, step * kKeys, p.seen.seq_k, p.head_dim);
    copy_rows_async<T, kKeys, kD, kThreads>(to + Shared::kV, p.v, b, h_kv, step * kKeys, p.seen.seq_k, p.head_dim);
  };
  copy_rows_async<T, kQueries, kD, kThreads>(base + Shared::kQ, p.q, b, h, first_row, p.seen.seq_q, p.head_dim);
  copy_rows_async<T, kQueries, kD, kThreads>(base + Shared::kDout, p.dout, b, h, first_row, p.seen.seq_q, p.head_dim);
  if (begin < end) copy_step(0, begin);
  ptx::commit_copies();

  auto* statistics = reinterpret_cast<float*>(shared + Shared::kStatistics) + warp_row * 2;
  make_statistics<T, kD, kWarpRows>(p, b, h, first_row + warp_row, statistics);
  ptx::wait_copies<0>();
  ptx::barrier_of_block();                         // (1)
  float lse[kRowBlocks][2], delta[kRowBlocks][2];  // negated
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int at = statistics_offset(i * 16 + half * 8 + lane / 4);
      lse[i][half] = statistics[at], delta[i][half] = statistics[at + 2];
    }
  }

  const std::uint32_t down = Rows::rows_first(lane), across = Rows::columns_first(lane);
  const std::uint32_t q_rows = base + Shared::kQ + warp_row * Rows::kRowBytes;
  const std::uint32_t dout_rows = base + Shared::kDout + warp_row * Rows::kRowBytes;
  constexpr int kHeld = kIsHeld ? kDepth : 1;
  std::uint32_t q[kHeld][kRowBlocks][4], dout[kHeld][kRowBlocks][4];
  if constexpr (kIsHeld) {
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
#pragma unroll
      for (int i = 0; i < kRowBlocks; ++i) {
        ptx::load_matrices(q[k][i], q_rows + Rows::block(down, k, i));
        ptx::load_matrices(dout[k][i], dout_rows + Rows::block(down, k, i));
      }
    }
  }

  float dq[kRowBlocks][kD / 8][4] = {};
  for (int step = begin; step < end; ++step) {
    const int stage = (step - begin) % kTile.stages;
    if (step > begin) {
      ptx::wait_copies<0>();
      ptx::barrier_of_block();  // (2)
    }
    if constexpr (kTile.stages > 1) {
      if (step + 1 < end) copy_step((step + 1 - begin) % kTile.stages, step + 1);
      ptx::commit_copies();
    }
    const std::uint32_t here = base + Shared::kStages + stage * Shared::kStage;

#pragma unroll
    for (int group = 0; group < kKeys / kAtOnce; ++group) {
      const int key = step * kKeys + group * kAtOnce, row = first_row + warp_row;
      if (key > row + kWarpRows - 1 + p.seen.shift) continue;  // no row of this warp sees these keys
      // Rows of Q or dO times rows of K or V.
      const auto multiply_rows = [&](float(&value)[kRowBlocks][kKeyBlocks][4],
                                     const std::uint32_t(&held)[kHeld][kRowBlocks][4], std::uint32_t rows,
                                     std::uint32_t keys) {
        keys += group * kAtOnce * Rows::kRowBytes;
        multiply<T, kDepth>(
            value,
            [&](std::uint32_t(&a)[4], int i, int k) {
              if constexpr (kIsHeld) {
#pragma unroll
                for (int r = 0; r < 4; ++r) a[r] = held[k][i][r];
              } else {
                ptx::load_matrices(a, rows + Rows::block(down, k, i));
              }
            },
            [&](std::uint32_t(&r)[4], int j, int k) { ptx::load_matrices(r, keys + Rows::block(across, k, j)); });
      };
      float s[kRowBlocks][kKeyBlocks][4] = {}, dp[kRowBlocks][kKeyBlocks][4];
#pragma unroll
      for (int i = 0; i < kRowBlocks; ++i) {
#pragma unroll
        for (int j = 0; j < kKeyBlocks; ++j) {
          dp[i][j][0] = dp[i][j][1] = delta[i][0];
          dp[i][j][2] = dp[i][j][3] = delta[i][1];
        }
      }
      multiply_rows(s, q, q_rows, here + Shared::kK);
      multiply_rows(dp, dout, dout_rows, here + Shared::kV);
#pragma unroll
      for (int i = 0; i < kRowBlocks; ++i) {
#pragma unroll
        for (int j = 0; j < kKeyBlocks; ++j) {
#pragma unroll
          for (int c = 0; c < 4; ++c) s[i][j][c] = ptx::exp2_approx(fmaf(s[i][j][c], p.scale_log2, lse[i][c / 2]));
        }
      }
      if (key + kAtOnce - 1 > min(row + p.seen.shift, p.seen.seq_k - 1)) {
#pragma unroll
        for (int i = 0; i < kRowBlocks; ++i) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int last_key = min(row + i * 16 + half * 8 + lane / 4 + p.seen.shift, p.seen.seq_k - 1);
            const int last = last_key - key - lane % 4 * 2;  // seen: columns ≤ last of this lane's row
#pragma unroll
            for (int j = 0; j < kKeyBlocks; ++j) {
              if (j * 8 > last) s[i][j][half * 2] = 0.0F;
              if (j * 8 + 1 > last) s[i][j][half * 2 + 1] = 0.0F;
            }
          }
        }
      }
      const std::uint32_t keys = here + Shared::kK + group * kAtOnce * Rows::kRowBytes;
      multiply<T, kAtOnce / 16>(
          dq,
          [&](std::uint32_t(&a)[4], int i, int k) {
#pragma unroll
            for (int r = 0; r < 4; ++r) {
              const int j = 2 * k + r / 2, c = r % 2 * 2;
              a[r] = ptx::pack<T>(s[i][j][c] * dp[i][j][c], s[i][j][c + 1] * dp[i][j][c + 1]);
            }
          },
          [&](std::uint32_t(&r)[4], int j, int k) {
            ptx::load_matrices_transposed(r, keys + Rows::block(down, j, k));
          });
    }
    if constexpr (kTile.stages == 1) {
      ptx::barrier_of_block();  // (3)
      if (step + 1 < end) copy_step(0, step + 1);
      ptx::commit_copies();
    }
  }

  if (p.queries_steps != 0) {
    const std::int64_t row =
        ((static_cast<std::int64_t>(part) * p.batch + b) * p.heads_q + h) * p.rows_q + first_row + warp_row;
#pragma unroll
    for (int i = 0; i < kRowBlocks; ++i) {
      float* to = p.dq_parts + (row / 16 + i) * (kD / 8) * kFragment;
#pragma unroll
      for (int j = 0; j < kD / 8; ++j) store_fragment(to + j * kFragment, lane, dq[i][j]);
    }
    return;
  }
  // Through the rows of Q that only this warp has read.
  __syncwarp();  // (4)
  accumulator_to_tile<T, Rows>(dq, p.scale, base + Shared::kQ, warp_row, 0);
  ptx::barrier_of_block();  // (5)
  tile_to_rows<T, Rows, kQueries, kThreads>(shared + Shared::kQ, p.dq, b, h, first_row, p.seen.seq_q, p.head_dim);
}

template <typename T, typename Tiles>
void launch_queries(const BackwardParams& params, BackwardGrid grid, device::Stream stream) {
  static PreparedBackward kernel(queries_kernel<T, Tiles>, QueriesShared<Tiles>::kBytes, "flash_mma backward, queries");
  launch_backward_kernel(kernel, Tiles::kQueries.threads(), params, grid, stream);
}

}  // namespace syslab::attention::flash
