// The keys kernel of flash_mma's backward passes: dK and dV of a tile of keys, and, fused, dQ by atomic additions.
//
// What it teaches: where an operand lies decides how much of shared memory's bandwidth a product takes. Scores are
// computed transposed, Sᵀ = K·Qᵀ and dPᵀ = V·dOᵀ, with keys along the rows of the accumulator: Pᵀ and dSᵀ then lie in
// registers exactly as mma takes its left operand for dV += Pᵀ·dO and dK += dSᵀ·Q, and nothing moves between the two
// products. Only dQ = dS·K, which sums over keys, needs dS of other warps: it goes through shared memory, once.
//
//   resident   K, V (keys × D), loaded once; dK, dV in fp32 registers until the end
//   a step     Q, dO (queries × D) and their statistics by cp.async into the stage that the step before has read
//   warps      `sharing` = 1 (D ≤ 64): a warp has its own 32 keys (16 in narrow tiles), all of their dK and dV, and
//              works 32 queries at a time. dQ of a step is made during the next one (`late_dq`), so that the barrier
//              for the next stage also covers dS: one barrier a step.
//              `sharing` = 2 (D = 128): dK and dV of 32 keys × 128 would take 256 registers. So two warps have the
//              same keys: each computes Sᵀ and dPᵀ for half of the queries, and dK and dV for half of the columns. Pᵀ
//              and dSᵀ pass between them through shared memory.
//   dQ         leaves as fp32 in the order of the accumulators, 16 bytes a lane, 512 contiguous bytes a warp
//              (red.v4, sm_90), to be rounded by the sum kernel.
//
// At D ≤ 64 two blocks of four warps share a multiprocessor and hide each other's waits; 255 registers a thread.
//
// Napkin maths, a block of 128 keys × 64 queries, D = 64, clocks of a multiprocessor at 2600 FLOP a clock (mma.sync on
// Hopper; wgmma has 4096): products 2016; ldmatrix and dS at 128 bytes a clock 2200; exponentials 512, hidden by
// products of other warps. 132 multiprocessors at 1.7 GHz make 530 TFLOP/s if the first two overlap completely, 280 if
// not at all. Seen (H100): 330 to 340. D = 128: 4100 and 4600 clocks, one block of eight warps with two barriers a
// step; seen 320 to 330. Tiles and their times stand in mma/backward_plan.hpp.
//
// What waits for what (landed, left: device/cuda/ptx.cuh; the numbers stand in the code). P and dS are the tiles in
// shared memory.
//
//   cp.async   One group a step: Q, dO and their statistics. The first holds K and V too.
//   (1) top of a step, block
//       landed   Each thread has waited for its own copies. Behind the barrier Q, dO and statistics of this step, in
//                the first step also K and V, are whole for all warps. With late dQ, dS of the step before is whole
//                too: add_dq() reads what all warps have stored there.
//       left     All warps have finished the step before. With two stages, the next copies fill the stage that it read.
//                This step stores P and dS over what that step read (late dQ has two tiles of dS: this step's is the
//                one that add_dq() read in the step before).
//   (2) shared keys, before dV and dK; block if dQ of this step follows, else the warps with the same keys
//       landed   P and dS of the warps with the same keys are whole for each of them; for dQ, dS of the whole block.
//       left     Nothing: P and dS are next overwritten behind (1). The named barriers 1, 2, … let the sets of warps go
//                on without waiting for each other.
//   (3) dQ of this step, keys not shared, block
//       landed   dS of all warps, for add_dq().
//       left     Nothing: dS is next overwritten behind (1).
//   (4) end of a step, one stage, block
//       landed   Nothing: that is (1).
//       left     All warps have read Q, dO and statistics for the last time. The next copies fill the only stage.
//   (5) after the last step, block
//       landed   dS of the last step, for late dQ. If no query sees the keys there was no step: then K and V, which
//                nothing has waited for. A late copy would overwrite the gradient (zeros) that is stored there.
//       left     All products with K and V are done, except late dQ. dK and dV are stored over K and V.
//   (6) late dQ, block
//       landed   Nothing.
//       left     add_dq() of all warps has read K. dK is stored over it.
//   (7) before the gradients are stored to global memory, block
//       landed   dK and dV of all warps: a thread takes 16 bytes of any row.
//       left     Nothing is overwritten any more.
//   kernels    Ordinary launches. Statistics (and zeros in dq_parts) come from a kernel before, and the sum kernel
//              starts when the additions to dQ of all blocks are done.
#pragma once

#include "ops/attention/mma/backward.cuh"

namespace syslab::attention::flash {

template <typename Tiles, bool kFused>
inline constexpr KeysTile kKeysTile = kFused ? Tiles::kFused : Tiles::kKeys;

// Byte offsets in shared memory.
template <typename Tiles, bool kFused>
struct KeysShared {
  static constexpr KeysTile kTile = kKeysTile<Tiles, kFused>;
  using Rows = SharedTile<kTile.head_dim>;
  using Scores = SharedTile<kTile.queries>;
  static constexpr int kOperand = kTile.keys * Rows::kRowBytes;
  static constexpr int kScores = kTile.keys * Scores::kRowBytes;
  static constexpr int kK = 0;
  static constexpr int kV = kOperand;
  static constexpr int kStages = 2 * kOperand;
  static constexpr int kQ = 0;  // inside a stage
  static constexpr int kDout = kTile.queries * Rows::kRowBytes;
  static constexpr int kStatistics = 2 * kDout;
  static constexpr int kStage = kStatistics + kTile.queries * 8;
  static constexpr int kDs = kStages + kTile.stages * kStage;  // [keys][queries]
  static constexpr int kDsBuffers = kFused && kTile.late_dq ? 2 : kFused || kTile.sharing > 1 ? 1 : 0;
  static constexpr int kP = kDs + kDsBuffers * kScores;
  static constexpr int kBytes = kP + (kTile.sharing > 1 ? kScores : 0);
  static_assert(kStage % 128 == 0);
};

template <typename T, typename Tiles, bool kFused>
__global__ void __launch_bounds__(kKeysTile<Tiles, kFused>.threads(), kKeysTile<Tiles, kFused>.blocks)
    keys_kernel(const __grid_constant__ BackwardParams p) {
  using Shared = KeysShared<Tiles, kFused>;
  using Rows = typename Shared::Rows;
  using Scores = typename Shared::Scores;
  constexpr KeysTile kTile = Shared::kTile;
  constexpr int kThreads = kTile.threads();
  constexpr int kD = kTile.head_dim, kKeys = kTile.keys, kQueries = kTile.queries, kAtOnce = kTile.at_once;
  constexpr int kSharing = kTile.sharing;
  constexpr bool kShares = kSharing > 1;
  constexpr bool kLate = kTile.late_dq;
  constexpr int kWarpKeys = kKeys / kTile.key_warps;
  constexpr int kColumns = kD / kSharing;  // of dK and dV that a warp owns
  constexpr int kKeyBlocks = kWarpKeys / 16, kQueryBlocks = kAtOnce / 8, kColumnBlocks = kColumns / 8;
  static_assert(!kShares || kAtOnce * kSharing == kQueries);
  static_assert(kTile.stages > 1 || !kLate);

  extern __shared__ __align__(1024) std::uint8_t shared[];
  const std::uint32_t base = ptx::shared_address(shared);
  // In a uniform register but where that makes ptxas 13.0 keep two others in memory: each way is right for some tiles.
  const int of_thread = static_cast<int>(threadIdx.x / 32);
  const int warp = kFused && kShares ? of_thread : ptx::uniform(of_thread);
  const int warp_key = warp / kSharing * kWarpKeys, share = warp % kSharing;

  // Which keys of which head, and which steps. Ascending keys under a causal mask: longest blocks first.
  const int tiles = (p.seen.seq_k + kKeys - 1) / kKeys;
  const int heads = static_cast<int>(blockIdx.x) / tiles;
  const int first_key = ptx::uniform(static_cast<int>(blockIdx.x) % tiles * kKeys);
  const int b = ptx::uniform(heads / p.heads_kv), h_kv = ptx::uniform(heads % p.heads_kv);
  const int part = static_cast<int>(blockIdx.y);
  const int steps = steps_of_keys(p.seen, first_key, kQueries);
  const int begin = part * p.keys_steps;
  const int end = p.keys_steps == 0 ? steps : min(steps, begin + p.keys_steps);
  if (part > 0 && begin >= end) return;
  const int first_tile = ptx::uniform(first_query_tile(p.seen, first_key, kQueries));
  const int tiles_of_head = ptx::uniform(max(steps / p.seen.group, 1));
  int query_tile = ptx::uniform(first_tile + begin % tiles_of_head);
  int head = ptx::uniform(h_kv * p.seen.group + begin / tiles_of_head);

  const auto copy_step = [&](int stage, int of_head, int of_tile) {
    const std::uint32_t to = base + Shared::kStages + stage * Shared::kStage;
    const int row = of_tile * kQueries;
    copy_rows_async<T, kQueries, kD, kThreads>(to + Shared::kQ, p.q, b, of_head, row, p.seen.seq_q, p.head_dim);
    copy_rows_async<T, kQueries, kD, kThreads>(to + Shared::kDout, p.dout, b, of_head, row, p.seen.seq_q, p.head_dim);
    if (threadIdx.x < kQueries / 2) {
      const float* from = p.statistics + ((static_cast<std::int64_t>(b) * p.heads_q + of_head) * p.rows_q + row) * 2;
      ptx::copy_async_16(to + Shared::kStatistics + threadIdx.x * 16, from + threadIdx.x * 4);
    }
  };

  // dQ of a step, from dS in shared memory.
  const auto add_dq = [&](std::uint32_t ds, int of_head, int of_tile) {
    constexpr int kRowWarps = kTile.query_warps, kColumnWarps = kThreads / 32 / kRowWarps;
    constexpr int kRowBlocks = kQueries / kRowWarps / 16, kBlocks = kD / kColumnWarps / 8;
    const int row = warp / kColumnWarps * kRowBlocks * 16, column = warp % kColumnWarps * kBlocks * 8;
    const int anew = ptx::lane_anew();
    const std::uint32_t left = Scores::block(Scores::columns_first(anew), row / 16, 0),
                        right = Rows::block(Rows::rows_first(anew), column / 16, 0);
    float dq[kRowBlocks][kBlocks][4] = {};
    multiply<T, kKeys / 16>(
        dq,
        [&](std::uint32_t(&a)[4], int i, int k) { ptx::load_matrices_transposed(a, ds + Scores::block(left, i, k)); },
        [&](std::uint32_t(&k_rows)[4], int j, int k) {
          ptx::load_matrices_transposed(k_rows, base + Shared::kK + Rows::block(right, j, k));
        });
    const std::int64_t row_block =
        ((static_cast<std::int64_t>(b) * p.heads_q + of_head) * p.rows_q + of_tile * kQueries + row) / 16;
    float* to = p.dq_parts + (row_block * (kD / 8) + column / 8) * kFragment;
#pragma unroll
    for (int i = 0; i < kRowBlocks; ++i) {
#pragma unroll
      for (int j = 0; j < kBlocks; ++j) add_fragment(to + (i * (kD / 8) + j) * kFragment, anew, dq[i][j]);
    }
  };

  copy_rows_async<T, kKeys, kD, kThreads>(base + Shared::kK, p.k, b, h_kv, first_key, p.seen.seq_k, p.head_dim);
  copy_rows_async<T, kKeys, kD, kThreads>(base + Shared::kV, p.v, b, h_kv, first_key, p.seen.seq_k, p.head_dim);
  if (begin < end) copy_step(0, head, query_tile);
  ptx::commit_copies();

  float dk[kKeyBlocks][kColumnBlocks][4] = {};
  float dv[kKeyBlocks][kColumnBlocks][4] = {};
  int head_before = 0, tile_before = 0;
  for (int step = begin; step < end; ++step) {
    int next_tile = query_tile + 1, next_head = head;
    if (next_tile == first_tile + tiles_of_head) next_tile = first_tile, ++next_head;

    ptx::wait_copies<0>();
    ptx::barrier_of_block();  // (1)
    const int turn = (step - begin) % 2;
    const int stage = kTile.stages > 1 ? turn : 0;
    if constexpr (kTile.stages > 1) {
      if (step + 1 < end) copy_step(1 - stage, next_head, next_tile);
      ptx::commit_copies();
    }
    const std::uint32_t here = base + Shared::kStages + stage * Shared::kStage;
    const std::uint32_t ds_tile = base + Shared::kDs + (Shared::kDsBuffers > 1 ? turn * Shared::kScores : 0);
    if constexpr (kFused && kLate) {
      if (step > begin) add_dq(base + Shared::kDs + (1 - turn) * Shared::kScores, head_before, tile_before);
    }

#pragma unroll
    for (int group = 0; group < (kShares ? 1 : kQueries / kAtOnce); ++group) {
      const int query = (kShares ? share : group) * kAtOnce;  // in the tile
      const int key = first_key + warp_key, row = query_tile * kQueries + query;
      std::uint32_t p_bits[kKeyBlocks][kQueryBlocks][2], ds_bits[kKeyBlocks][kQueryBlocks][2];
      const bool any_seen = key <= row + kAtOnce - 1 + p.seen.shift;
      if (any_seen) {
        const std::uint32_t statistics = here + Shared::kStatistics + query * 8 + ptx::lane_anew() % 4 * 16;
        // Rows of K or V times rows of Q or dO.
        const auto multiply_rows = [&](float(&value)[kKeyBlocks][kQueryBlocks][4], std::uint32_t keys,
                                       std::uint32_t queries) {
          const int anew = ptx::lane_anew();
          const std::uint32_t left = Rows::rows_first(anew), right = Rows::columns_first(anew);
          keys += warp_key * Rows::kRowBytes, queries += query * Rows::kRowBytes;
          multiply<T, kD / 16>(
              value, [&](std::uint32_t(&a)[4], int i, int k) { ptx::load_matrices(a, keys + Rows::block(left, k, i)); },
              [&](std::uint32_t(&r)[4], int j, int k) { ptx::load_matrices(r, queries + Rows::block(right, k, j)); });
        };
        float s[kKeyBlocks][kQueryBlocks][4] = {}, dp[kKeyBlocks][kQueryBlocks][4];
        multiply_rows(s, base + Shared::kK, here + Shared::kQ);
#pragma unroll
        for (int j = 0; j < kQueryBlocks; ++j) {
          const float2 delta = ptx::load_shared_pair(statistics + j * 64 + 8);
#pragma unroll
          for (int i = 0; i < kKeyBlocks; ++i) {
            dp[i][j][0] = dp[i][j][2] = delta.x;
            dp[i][j][1] = dp[i][j][3] = delta.y;
          }
        }
        multiply_rows(dp, base + Shared::kV, here + Shared::kDout);
#pragma unroll
        for (int j = 0; j < kQueryBlocks; ++j) {
          const float2 lse = ptx::load_shared_pair(statistics + j * 64);
#pragma unroll
          for (int i = 0; i < kKeyBlocks; ++i) {
#pragma unroll
            for (int c = 0; c < 4; ++c) {
              s[i][j][c] = ptx::exp2_approx(fmaf(s[i][j][c], p.scale_log2, c % 2 == 0 ? lse.x : lse.y));
            }
          }
        }
        if (key + kWarpKeys - 1 > min(row + p.seen.shift, p.seen.seq_k - 1)) {
          const int lane = ptx::lane_anew();
#pragma unroll
          for (int j = 0; j < kQueryBlocks; ++j) {
#pragma unroll
            for (int c = 0; c < 2; ++c) {
              const int last_key = min(row + j * 8 + lane % 4 * 2 + c + p.seen.shift, p.seen.seq_k - 1);
              const int last = last_key - key - lane / 4;  // seen: rows ≤ last of this lane's column
#pragma unroll
              for (int i = 0; i < kKeyBlocks; ++i) {
                if (i * 16 > last) s[i][j][c] = 0.0F;
                if (i * 16 + 8 > last) s[i][j][c + 2] = 0.0F;
              }
            }
          }
        }
#pragma unroll
        for (int i = 0; i < kKeyBlocks; ++i) {
#pragma unroll
          for (int j = 0; j < kQueryBlocks; ++j) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              const int c = half * 2;
              p_bits[i][j][half] = ptx::pack<T>(s[i][j][c], s[i][j][c + 1]);
              ds_bits[i][j][half] = ptx::pack<T>(s[i][j][c] * dp[i][j][c], s[i][j][c + 1] * dp[i][j][c + 1]);
            }
          }
        }
      } else {
#pragma unroll
        for (int i = 0; i < kKeyBlocks; ++i) {
#pragma unroll
          for (int j = 0; j < kQueryBlocks; ++j) {
            p_bits[i][j][0] = p_bits[i][j][1] = ds_bits[i][j][0] = ds_bits[i][j][1] = 0;
          }
        }
      }
      if constexpr (Shared::kDsBuffers > 0) {
        const std::uint32_t first = accumulator_block<Scores>(accumulator_first<Scores>(ptx::lane_anew()), query / 8) +
                                    warp_key * Scores::kRowBytes;
#pragma unroll
        for (int i = 0; i < kKeyBlocks; ++i) {
#pragma unroll
          for (int j = 0; j < kQueryBlocks; ++j) {
            const std::uint32_t at = accumulator_block<Scores>(first, j) + i * 16 * Scores::kRowBytes;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              ptx::store_shared(ds_tile + at + half * 8 * Scores::kRowBytes, ds_bits[i][j][half]);
              if constexpr (kShares) {
                ptx::store_shared(base + Shared::kP + at + half * 8 * Scores::kRowBytes, p_bits[i][j][half]);
              }
            }
          }
        }
      }
      if constexpr (!kShares) {
        // dV += Pᵀ·dO, dK += dSᵀ·Q from registers.
        const auto accumulate = [&](float(&value)[kKeyBlocks][kColumnBlocks][4],
                                    const std::uint32_t(&bits)[kKeyBlocks][kQueryBlocks][2], std::uint32_t queries) {
          const std::uint32_t right = Rows::rows_first(ptx::lane_anew());
          queries += query * Rows::kRowBytes;
          multiply<T, kAtOnce / 16>(
              value,
              [&](std::uint32_t(&a)[4], int i, int k) {
#pragma unroll
                for (int r = 0; r < 4; ++r) a[r] = bits[i][2 * k + r / 2][r % 2];
              },
              [&](std::uint32_t(&r)[4], int j, int k) {
                ptx::load_matrices_transposed(r, queries + Rows::block(right, j, k));
              });
        };
        if (any_seen) {
          accumulate(dv, p_bits, here + Shared::kDout);
          accumulate(dk, ds_bits, here + Shared::kQ);
        }
      }
    }

    if constexpr (kShares) {
      // dV += Pᵀ·dO, dK += dSᵀ·Q from shared memory, where all warps with the same keys have stored their parts.
      if constexpr (kFused && !kLate) {
        ptx::barrier_of_block();  // (2)
      } else {
        ptx::barrier(1 + warp / kSharing, kSharing * 32);  // (2)
      }
      const auto accumulate = [&](float(&value)[kKeyBlocks][kColumnBlocks][4], std::uint32_t scores,
                                  std::uint32_t queries) {
        const int anew = ptx::lane_anew();
        const std::uint32_t left = Scores::rows_first(anew),
                            right = Rows::block(Rows::rows_first(anew), share * (kColumns / 16), 0);
        scores += warp_key * Scores::kRowBytes;
        multiply<T, kQueries / 16>(
            value,
            [&](std::uint32_t(&a)[4], int i, int k) { ptx::load_matrices(a, scores + Scores::block(left, k, i)); },
            [&](std::uint32_t(&r)[4], int j, int k) {
              ptx::load_matrices_transposed(r, queries + Rows::block(right, j, k));
            });
      };
      accumulate(dv, base + Shared::kP, here + Shared::kDout);
      if constexpr (kFused && !kLate) add_dq(ds_tile, head, query_tile);
      accumulate(dk, ds_tile, here + Shared::kQ);
    }
    if constexpr (kFused && !kLate && !kShares) {
      ptx::barrier_of_block();  // (3)
      add_dq(ds_tile, head, query_tile);
    }
    if constexpr (kTile.stages == 1) {
      ptx::barrier_of_block();  // (4)
      if (step + 1 < end) copy_step(0, next_head, next_tile);
      ptx::commit_copies();
    }
    head_before = head, tile_before = query_tile;
    head = next_head, query_tile = next_tile;
  }

  ptx::wait_copies<0>();
  ptx::barrier_of_block();  // (5)
  if constexpr (kFused && kLate) {
    if (begin < end) add_dq(base + Shared::kDs + (end - 1 - begin) % 2 * Shared::kScores, head_before, tile_before);
    ptx::barrier_of_block();  // (6)
  }
  if (p.keys_steps != 0) {
    const int lane = ptx::lane_anew();
    const std::int64_t row =
        ((static_cast<std::int64_t>(part) * p.batch + b) * p.heads_kv + h_kv) * p.rows_k + first_key + warp_key;
#pragma unroll
    for (int i = 0; i < kKeyBlocks; ++i) {
      const std::int64_t at = ((row / 16 + i) * (kD / 8) + share * kColumnBlocks) * kFragment;
#pragma unroll
      for (int j = 0; j < kColumnBlocks; ++j) {
        store_fragment(p.dk_parts + at + j * kFragment, lane, dk[i][j]);
        store_fragment(p.dv_parts + at + j * kFragment, lane, dv[i][j]);
      }
    }
    return;
  }
  accumulator_to_tile<T, Rows>(dk, p.scale, base + Shared::kK, warp_key, share * kColumns);
  accumulator_to_tile<T, Rows>(dv, 1.0F, base + Shared::kV, warp_key, share * kColumns);
  ptx::barrier_of_block();  // (7)
  tile_to_rows<T, Rows, kKeys, kThreads>(shared + Shared::kK, p.dk, b, h_kv, first_key, p.seen.seq_k, p.head_dim);
  tile_to_rows<T, Rows, kKeys, kThreads>(shared + Shared::kV, p.dv, b, h_kv, first_key, p.seen.seq_k, p.head_dim);
}

template <typename T, typename Tiles, bool kFused>
void launch_keys(const BackwardParams& params, BackwardGrid grid, device::Stream stream) {
  static PreparedBackward kernel(keys_kernel<T, Tiles, kFused>, KeysShared<Tiles, kFused>::kBytes,
                                 "flash_mma backward, keys");
  launch_backward_kernel(kernel, kKeysTile<Tiles, kFused>.threads(), params, grid, stream);
}

}  // namespace syslab::attention::flash
