// FlashAttention-2's backward pass over planes (fp32/kernels.hpp), for either arithmetic, in two kernels without
// atomics: dK and dV, where a block owns keys and goes over queries, and dQ, where it owns queries and goes over keys.
// Seven products to the nominal five, and the same bits at every run.
//
//   P = exp(S − L),  dS = P∘(dP − δ),  dP = dO·Vᵀ,  δ_i = Σ_d dO_id·O_id
//   dV = Pᵀ·dO,  dK = scale·dSᵀ·Q,  dQ = scale·dS·K
//
// In both a block owns 64 rows and a warp 16 of them. Their blocks of A (K and V; Q and dO) stay in registers where
// there is room (D ≤ 64) and in shared memory otherwise. The other side comes in steps through one or two stages. The
// first kernel makes Sᵀ and dPᵀ, so that Pᵀ and dSᵀ lie in registers as blocks of A do and need not go through shared
// memory.
//
// Ranges. P = exp2(score + s − L·log2(e))·2^(15 − s) is computed 2^15 times too large, with s such that most exponents
// are near 0, where their rounding is least. |dP − δ| ≤ ‖dO_i‖‖V_j‖ + |δ_i| < 2^x with an x for each pair of tiles, so
// dS·2^(15 − x) stays below 2^15 whatever the gradients' size. Before a product each row of Pᵀ, dSᵀ or dS is brought to
// 2^15 by its own largest value: the gradient of a key that no query attends to is tiny, but keeps all its digits. The
// products of each step have accumulators of their own, which are scaled and added to the gradient in fp32.
//
//   columns   step   stages   shared memory   registers, spilled bytes (sm_90a): dK and dV; dQ
//   16        64     2        17.5 KiB        229, 0    149, 0
//   32        64     2        33.5 KiB        254, 0    205, 0
//   64        32     2        32.8 KiB        255, 8    233, 0
//   128       32     1        96.4 KiB        255, 36   255, 0
//
// Napkin maths (H100): 21 products of fp16 to the nominal five: at mma.sync's 620 TFLOP/s 148 of the fp32 problem. With
// 16 rows a warp, shared memory is busy 83 % of that time where A is in registers, 103 % where it is not. Expected 65
// to 85 at D = 64, 50 to 70 at D = 128.
//
// What waits for what, in both kernels (landed, left: device/cuda/ptx.cuh; the numbers stand in the code)
//
//   cp.async   The two owned tiles, and one group a step: in key_gradient_kernel (dK, dV) Q, dO and three numbers of
//              each row, in query_gradient_kernel (dQ) K and V. Where the owned tiles stay in shared memory, they are
//              in the group of the first step. Every wait is for all copies: those of the next step are queued after
//              (3) or (4), so only those of this step are under way. Empty commits have no effect.
//   (1) owned tiles on their way to registers, block
//       landed   Each thread has waited for its own copies. Behind the barrier both tiles are whole, and each warp
//                loads its blocks of A.
//       left     Nothing: the memory was not used before.
//   (2) after the blocks were loaded, block
//       landed   Nothing.
//       left     All warps have loaded their blocks. The first step's copies fill the first owned tile (both where
//                D ≤ 32); at D = 64 the second step's, behind (3), fill the other.
//   (3) top of a step, block
//       landed   What the step reads is whole for all warps; in the first step also the owned tiles that stay.
//       left     With two stages: all warps have finished the step before, and the next copies fill the stage that it
//                read. (In the first step (2) has done that.) With one stage nothing: that is (4).
//   (4) end of a step, one stage, block
//       landed   Nothing: that is (3).
//       left     All warps have read the only stage, and its statistics, in this step. The next copies fill it; in the
//                last step it has no job.
//   After the loop nothing waits: results go from registers to memory that no other thread writes.
//   wait_for_kernels_before
//              landed   Planes and statistics.
//              left     Earlier kernels have read the gradients; the join of dK and dV has read `partial`, which the
//                       second kernel overwrites.
#pragma once

#include "ops/attention/fp32/arithmetic.cuh"
#include "ops/attention/fp32/forward.cuh"
#include "ops/attention/fp32/kernels.hpp"

namespace syslab::attention::fp32 {

template <int kColumns>
struct BackwardTile {
  static constexpr bool kResident = kColumns <= 64;  // blocks of A in registers
  static constexpr int kRows = 16 * kWarps;
  static_assert(kRows == kGradientRows);
  static constexpr int kStep = kColumns <= 32 ? 64 : 32;
  static constexpr int kStages = kResident ? 2 : 1;
  static constexpr int kRowBytes = 4 * kColumns;
  static constexpr int kOwned = 2 * kRows * kRowBytes;
  static constexpr int kStage = 2 * kStep * kRowBytes;
  static constexpr int kStatistics = 3 * kStep * 4;
  static constexpr int kShared =
      (kResident ? (kOwned > kStages * kStage ? kOwned : kStages * kStage) : kOwned + kStages * kStage) +
      kStages * kStatistics;
};

// Two owned tiles, as blocks of A: in registers, or where they lie in shared memory.
template <class Arithmetic, int kColumns, bool kResident>
class Owned {
 public:
  __device__ void load(std::uint32_t tile, const LaneOffsets<kColumns>& offsets, int warp) {
    if constexpr (kResident) {
#pragma unroll
      for (int d = 0; d < kColumns / 16; ++d) load_a<Arithmetic, kColumns>(blocks_[d], tile, offsets, d, warp);
    } else {
      tile_ = tile;
      warp_ = warp;
    }
  }
  // sums = this · (16·kMany rows of `other`, from 16·down on)ᵀ.
  template <int kMany>
  __device__ void multiply(float (&sums)[1][2 * kMany][4], std::uint32_t other, const LaneOffsets<kColumns>& offsets,
                           int down) const {
    const auto load = [&](std::uint32_t(&r)[4], int part, int d, int w) {
      load_b<Arithmetic, kColumns>(r, other, offsets, part, d, down + w);
    };
    const auto block = [&](int, int d) {
      if constexpr (kResident) {
        return blocks_[d];
      } else {
        BlockA loaded;
        load_a<Arithmetic, kColumns>(loaded, tile_, offsets, d, warp_);
        return loaded;
      }
    };
    Arithmetic::template multiply<1, kMany, kColumns / 16>(sums, block, load);
  }

 private:
  BlockA blocks_[kResident ? kColumns / 16 : 1];
  std::uint32_t tile_ = 0;
  int warp_ = 0;
};

// Brings the largest of each of a thread's two rows of 8·kTiles columns to [2¹⁴, 2¹⁵), so that a row keeps its digits
// in halves however small it is (a key that hardly any query attends to still has a gradient), and packs them to blocks
// of A. `undo` gets the powers of two that undo the scaling.
template <class Arithmetic, int kTiles>
__device__ __forceinline__ void to_scaled_blocks(BlockA (&blocks)[kTiles / 2], float (&values)[kTiles][4],
                                                 float (&undo)[2]) {
  if constexpr (Arithmetic::kScaled) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float most = 0;
#pragma unroll
      for (int n = 0; n < kTiles; ++n) most = fmaxf(most, fmaxf(fabsf(values[n][2 * h]), fabsf(values[n][2 * h + 1])));
      // Biased exponent of the largest, where its power of two and the inverse's are normal.
      const int exponent = min(max(static_cast<int>(__float_as_uint(ptx::quad_max(most)) >> 23), 15), 240);
      const float scale = __uint_as_float(static_cast<unsigned>(254 - exponent + kTop - 1) << 23);
      undo[h] = __uint_as_float(static_cast<unsigned>(exponent - kTop + 1) << 23);
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
        values[n][2 * h] *= scale;
        values[n][2 * h + 1] *= scale;
      }
    }
  } else {
    undo[0] = undo[1] = 1;
  }
#pragma unroll
  for (int n = 0; n < kTiles / 2; ++n) Arithmetic::to_a(blocks[n], values[2 * n], values[2 * n + 1]);
}

// gradient += factor · (left · rows of `right`), step by step of 16 columns; a factor for each of a thread's two rows.
template <class Arithmetic, int kColumns, int kMany>
__device__ __forceinline__ void accumulate(float (&gradient)[kColumns / 8][4], const BlockA (&left)[kMany],
                                           std::uint32_t right, const LaneOffsets<kColumns>& offsets,
                                           const float (&factor)[2]) {
#pragma unroll
  for (int d = 0; d < kColumns / 16; ++d) {
    float sums[1][2][4] = {};
    Arithmetic::template multiply<1, 1, kMany>(
        sums, [&](int, int n) -> const BlockA& { return left[n]; },
        [&](std::uint32_t(&r)[4], int part, int n, int) {
          Arithmetic::template load_summed_rows<kColumns>(r, right, offsets, part, d, n);
        });
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      float& sum = gradient[2 * d + i / 4][i % 4];
      sum = fmaf(sums[0][i / 4][i % 4], factor[i % 4 / 2], sum);
    }
  }
}

template <int kColumns>
__device__ __forceinline__ void store_gradient(const float (&gradient)[kColumns / 8][4], float* first, float* second,
                                               int width, bool pairs, int quad) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float* const row = h == 0 ? first : second;
    if (row == nullptr) continue;
#pragma unroll
    for (int n = 0; n < kColumns / 8; ++n) {
      store_two(row, 8 * n + 2 * quad, width, pairs, gradient[n][2 * h], gradient[n][2 * h + 1]);
    }
  }
}

// The tile of keys of a block, and its chunk of the queries that see them. First keys first: most queries see them.
template <int kRows>
struct KeyBlock {
  int chunk, tile, head;  // of batch·heads_kv

  __device__ KeyBlock(const BackwardParams& params, int index) {
    const int tiles = (params.shape.seq_k + kRows - 1) / kRows;
    chunk = index % params.split.chunks;
    index /= params.split.chunks;
    tile = index % tiles;
    head = index / tiles;
  }
};

// Exponent x with |dP − δ| < 2^x for a tile of queries and one of keys.
__device__ __forceinline__ int gradient_exponent(int dout_norm, int v_norm, int delta_scale) {
  return 1 + max(dout_norm + v_norm, delta_scale);
}

template <class Arithmetic, int kColumns>
__global__ __launch_bounds__(kThreads, 2) void key_gradient_kernel(const BackwardParams params) {
  using Config = BackwardTile<kColumns>;
  constexpr int kStep = Config::kStep, kRowBytes = Config::kRowBytes, kQueries = kStep / 16;
  constexpr int kMany = Config::kResident || kStep == 16 ? 1 : 2;  // groups of 16 queries that share a block of A
  extern __shared__ __align__(128) char shared[];
  const std::uint32_t owned = ptx::shared_address(shared);
  const std::uint32_t stages = owned + (Config::kResident ? 0 : Config::kOwned);
  char* const statistics = shared + Config::kShared - Config::kStages * Config::kStatistics;

  const Shape& shape = params.shape;
  const KeyBlock<Config::kRows> block(params, static_cast<int>(blockIdx.x));
  const int chunk = block.chunk, head = block.head;
  const int first_head = head / shape.heads_kv * shape.heads_q + head % shape.heads_kv * shape.group;
  const int first_key = block.tile * Config::kRows;
  const Range queries = queries_of(shape, first_key);
  const int per_head = queries.end - queries.begin;
  constexpr int kStepsOfTile = kTileRows / kStep;
  // Over all query heads of the group, one after the other.
  const int begin = chunk * params.split.tiles * kStepsOfTile;
  const int end = min(per_head * shape.group, (chunk + 1) * params.split.tiles) * kStepsOfTile;
  if (begin >= end && chunk > 0) return;
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();

  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const LaneOffsets<kColumns> offsets(lane);
  const int key_row = head * shape.padded_k + first_key;

  // The first query of a step: in its head, and in the planes of all heads. The heads of a group follow one another.
  int query = (queries.begin + (per_head == 0 ? 0 : begin / kStepsOfTile % per_head)) * kTileRows;
  int plane_row = (first_head + (per_head == 0 ? 0 : begin / kStepsOfTile / per_head)) * shape.padded_q + query;
  const auto advance = [&](int& at_query, int& at_row) {
    at_query += kStep;
    at_row += kStep;
    if (at_query < shape.seq_q || at_query % kTileRows != 0) return;
    // To the next head of the group: rare, so its values are computed anew.
    const KeyBlock<Config::kRows> again(params, block_index_anew());
    at_row += shape.padded_q - at_query;
    at_query = queries_of(shape, again.tile * Config::kRows).begin * kTileRows;
    at_row += at_query;
  };
  const auto load_step = [&](int slot, int row) {
    const std::uint32_t stage = stages + slot * Config::kStage;
    const std::int64_t at = static_cast<std::int64_t>(row) * kRowBytes;
    copy_linear_async<kStep * kRowBytes, kThreads>(stage, params.q.data + at);
    copy_linear_async<kStep * kRowBytes, kThreads>(stage + kStep * kRowBytes, params.dout.data + at);
    const std::uint32_t to = ptx::shared_address(statistics) + slot * Config::kStatistics;
    copy_linear_async<kStep * 4, kThreads>(to, reinterpret_cast<const char*>(params.shift + row));
    copy_linear_async<kStep * 4, kThreads>(to + kStep * 4, reinterpret_cast<const char*>(params.rest + row));
    copy_linear_async<kStep * 4, kThreads>(to + 2 * kStep * 4, reinterpret_cast<const char*>(params.delta + row));
  };

  Owned<Arithmetic, kColumns, Config::kResident> k, v;
  float dk[kColumns / 8][4] = {}, dv[kColumns / 8][4] = {};
  const int last_key = first_key + warp * 16 + 15;  // of the warp

  if (begin < end) {
    copy_linear_async<Config::kRows * kRowBytes, kThreads>(
        owned, params.k.data + static_cast<std::int64_t>(key_row) * kRowBytes);
    copy_linear_async<Config::kRows * kRowBytes, kThreads>(
        owned + Config::kOwned / 2, params.v.data + static_cast<std::int64_t>(key_row) * kRowBytes);
    if constexpr (Config::kResident) {
      // The owned tiles pass through the stages on their way to the registers.
      ptx::commit_copies();
      ptx::wait_copies<0>();
      __syncthreads();  // (1)
    }
    k.load(owned, offsets, warp);
    v.load(owned + Config::kOwned / 2, offsets, warp);
    if constexpr (Config::kResident) __syncthreads();  // (2)
    load_step(0, plane_row);
  }
  ptx::commit_copies();
  int slot = 0;
  for (int left = end - begin; left > 0; --left) {
    ptx::wait_copies<0>();
    __syncthreads();  // (3)
    if constexpr (Config::kStages == 2) {
      if (left > 1) {
        int next_query = query, next_row = plane_row;
        advance(next_query, next_row);
        load_step(1 - slot, next_row);
      }
      ptx::commit_copies();
    }
    const std::uint32_t q_tile = stages + slot * Config::kStage, dout_tile = q_tile + kStep * kRowBytes;
    const float* const shift = reinterpret_cast<const float*>(statistics + slot * Config::kStatistics);
    const float *const rest = shift + kStep, *const delta = rest + kStep;
    const int own = static_cast<int>(key_row / kTileRows);
    const TileScale k_scale = params.k.scales[own], v_scale = params.v.scales[own];
    const TileScale dout_scale = params.dout.scales[plane_row / kTileRows];
    const int q_exponent = params.q.scales[plane_row / kTileRows].exponent;
    const int x = gradient_exponent(dout_scale.norm, v_scale.norm, params.delta_scale[plane_row / kTileRows]);
    const float factor = shape.scale_log2 * power_of_two(q_exponent + k_scale.exponent - 2 * kTop);
    const float dp_factor = power_of_two(v_scale.exponent + dout_scale.exponent - 2 * kTop - x);
    const float delta_factor = power_of_two(-x);

    float p[2 * kQueries][4];
#pragma unroll
    for (int n = 0; n < kQueries; n += kMany) {
      float sums[1][2 * kMany][4] = {};
      k.template multiply<kMany>(sums, q_tile, offsets, n);
#pragma unroll
      for (int i = 0; i < kMany * 8; ++i) p[2 * n + i / 4][i % 4] = sums[0][i / 4][i % 4];
    }
    // A query sees key j when j ≤ query + offset: no mask if the first query sees the warp's last key.
    const bool masked = shape.causal && query + shape.offset < last_key;
#pragma unroll
    for (int n = 0; n < 2 * kQueries; ++n) {
      const int at = 8 * n + 2 * (lane % 4);
      const float2 shifts = *reinterpret_cast<const float2*>(shift + at);
      const float2 rests = *reinterpret_cast<const float2*>(rest + at);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float weight = ptx::exp2_approx(fmaf(p[n][i], factor, i % 2 == 0 ? shifts.x : shifts.y));
        p[n][i] = weight * (i % 2 == 0 ? rests.x : rests.y);
      }
    }
    if (masked) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int thread = ptx::thread_anew();
        const int key = last_key - 15 + thread % 32 / 4 + i / 2 * 8;
        const int behind = key - shape.offset - (query + thread % 4 * 2 + i % 2);
#pragma unroll
        for (int n = 0; n < 2 * kQueries; ++n) {
          if (behind > 8 * n) p[n][i] = 0;
        }
      }
    }
    // dS first, from P as it is; both are then scaled row by row.
    float ds[2 * kQueries][4];
#pragma unroll
    for (int n = 0; n < kQueries; n += kMany) {
      float sums[1][2 * kMany][4] = {};
      v.template multiply<kMany>(sums, dout_tile, offsets, n);
#pragma unroll
      for (int m = 0; m < 2 * kMany; ++m) {
        const float2 deltas = *reinterpret_cast<const float2*>(delta + 16 * n + 8 * m + 2 * (lane % 4));
        const float scaled[2] = {deltas.x * -delta_factor, deltas.y * -delta_factor};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          ds[2 * n + m][i] = p[2 * n + m][i] * fmaf(sums[0][m][i], dp_factor, scaled[i % 2]);
        }
      }
    }
    BlockA left_block[kQueries];
    float undo[2];
    to_scaled_blocks<Arithmetic>(left_block, p, undo);
    const float dv_factor = power_of_two(dout_scale.exponent - 2 * kTop);
    accumulate<Arithmetic, kColumns>(dv, left_block, dout_tile, offsets, {undo[0] * dv_factor, undo[1] * dv_factor});
    to_scaled_blocks<Arithmetic>(left_block, ds, undo);
    const float dk_factor = shape.scale * power_of_two(q_exponent + x - 2 * kTop);
    accumulate<Arithmetic, kColumns>(dk, left_block, q_tile, offsets, {undo[0] * dk_factor, undo[1] * dk_factor});

    advance(query, plane_row);
    if constexpr (Config::kStages == 1) {
      __syncthreads();  // (4)
      if (left > 1) load_step(0, plane_row);
      ptx::commit_copies();
    } else {
      slot ^= 1;
    }
  }

  const KeyBlock<Config::kRows> done(params, block_index_anew());
  const int thread = ptx::thread_anew();
  const std::int64_t heads = static_cast<std::int64_t>(shape.batch) * shape.heads_kv;
  const bool whole = params.split.chunks == 1;
  float* rows[2][2] = {};
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = done.tile * Config::kRows + thread / 32 * 16 + thread % 32 / 4 + 8 * h;
    if (row >= shape.seq_k) continue;
    if (whole) {
      rows[0][h] = params.first.at(done.head / shape.heads_kv, done.head % shape.heads_kv, row);
      rows[1][h] = params.second.at(done.head / shape.heads_kv, done.head % shape.heads_kv, row);
    } else {
#pragma unroll
      for (int which = 0; which < 2; ++which) {
        const std::int64_t part = (which * heads + done.head) * params.split.chunks + done.chunk;
        rows[which][h] = params.partial + (part * shape.padded_k + row) * kColumns;
      }
    }
  }
  const int width = whole ? shape.head_dim : kColumns;
  store_gradient<kColumns>(dk, rows[0][0], rows[0][1], width, !whole || params.pairs_first, thread % 4);
  store_gradient<kColumns>(dv, rows[1][0], rows[1][1], width, !whole || params.pairs_second, thread % 4);
}

template <class Arithmetic, int kColumns>
__global__ __launch_bounds__(kThreads, 2) void query_gradient_kernel(const BackwardParams params) {
  using Config = BackwardTile<kColumns>;
  constexpr int kStep = Config::kStep, kRowBytes = Config::kRowBytes, kKeys = kStep / 16;
  constexpr int kMany = Config::kResident || kStep == 16 ? 1 : 2;
  extern __shared__ __align__(128) char shared[];
  const std::uint32_t owned = ptx::shared_address(shared);
  const std::uint32_t stages = owned + (Config::kResident ? 0 : Config::kOwned);

  const Shape& shape = params.shape;
  const QueryBlock<Config::kRows> block(params, static_cast<int>(blockIdx.x));
  const int chunk = block.chunk, head = block.head;
  const int first_row = block.tile * Config::kRows;
  const Range keys = keys_of(shape, first_row, Config::kRows);
  constexpr int kStepsOfTile = kTileRows / kStep;
  const int begin = chunk * params.split.tiles * kStepsOfTile;
  const int end = min(keys.end, (chunk + 1) * params.split.tiles) * kStepsOfTile;
  if (begin >= end && chunk > 0) return;
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();

  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const LaneOffsets<kColumns> offsets(lane);
  const std::int64_t q_row = static_cast<std::int64_t>(head) * shape.padded_q + first_row;
  const int kv_tile =
      (head / shape.heads_q * shape.heads_kv + head % shape.heads_q / shape.group) * (shape.padded_k / kTileRows);
  const int q_exponent = params.q.scales[q_row / kTileRows].exponent;
  const TileScale dout_scale = params.dout.scales[q_row / kTileRows];
  const int delta_scale = params.delta_scale[q_row / kTileRows];
  const int warp_row = first_row + warp * 16;
  float shift[2], rest[2], delta[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    shift[h] = params.shift[q_row + warp * 16 + lane / 4 + 8 * h];
    rest[h] = params.rest[q_row + warp * 16 + lane / 4 + 8 * h];
    delta[h] = params.delta[q_row + warp * 16 + lane / 4 + 8 * h];
  }

  const auto load_step = [&](int step) {
    const std::uint32_t stage = stages + (step - begin) % Config::kStages * Config::kStage;
    const std::int64_t at = (static_cast<std::int64_t>(kv_tile) * kTileRows + step * kStep) * kRowBytes;
    copy_linear_async<kStep * kRowBytes, kThreads>(stage, params.k.data + at);
    copy_linear_async<kStep * kRowBytes, kThreads>(stage + kStep * kRowBytes, params.v.data + at);
  };

  Owned<Arithmetic, kColumns, Config::kResident> q, dout;
  float dq[kColumns / 8][4] = {};
  const int seen_by_all = shape.limit(warp_row);

  if (begin < end) {
    copy_linear_async<Config::kRows * kRowBytes, kThreads>(owned, params.q.data + q_row * kRowBytes);
    copy_linear_async<Config::kRows * kRowBytes, kThreads>(owned + Config::kOwned / 2,
                                                           params.dout.data + q_row * kRowBytes);
    if constexpr (Config::kResident) {
      ptx::commit_copies();
      ptx::wait_copies<0>();
      __syncthreads();  // (1)
    }
    q.load(owned, offsets, warp);
    dout.load(owned + Config::kOwned / 2, offsets, warp);
    if constexpr (Config::kResident) __syncthreads();  // (2)
    load_step(begin);
  }
  ptx::commit_copies();
  for (int step = begin; step < end; ++step) {
    ptx::wait_copies<0>();
    __syncthreads();  // (3)
    if constexpr (Config::kStages == 2) {
      if (step + 1 < end) load_step(step + 1);
      ptx::commit_copies();
    }
    const std::uint32_t k_tile = stages + (step - begin) % Config::kStages * Config::kStage;
    const std::uint32_t v_tile = k_tile + kStep * kRowBytes;
    const int first_key = step * kStep;
    const int k_exponent = params.k.scales[kv_tile + first_key / kTileRows].exponent;
    const TileScale v_scale = params.v.scales[kv_tile + first_key / kTileRows];
    const int x = gradient_exponent(dout_scale.norm, v_scale.norm, delta_scale);
    const float factor = shape.scale_log2 * power_of_two(q_exponent + k_exponent - 2 * kTop);
    const float dp_factor = power_of_two(v_scale.exponent + dout_scale.exponent - 2 * kTop - x);
    const float delta_factor = power_of_two(-x);
    const float scaled_delta[2] = {delta[0] * -delta_factor, delta[1] * -delta_factor};

    float p[2 * kKeys][4];
#pragma unroll
    for (int n = 0; n < kKeys; n += kMany) {
      float sums[1][2 * kMany][4] = {};
      q.template multiply<kMany>(sums, k_tile, offsets, n);
#pragma unroll
      for (int i = 0; i < kMany * 8; ++i) {
        const int h = i % 4 / 2;
        p[2 * n + i / 4][i % 4] = rest[h] * ptx::exp2_approx(fmaf(sums[0][i / 4][i % 4], factor, shift[h]));
      }
    }
    if (first_key + kStep > seen_by_all) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int left = shape.limit(warp_row + lane / 4 + i / 2 * 8) - first_key - 2 * (lane % 4) - i % 2;
#pragma unroll
        for (int n = 0; n < 2 * kKeys; ++n) {
          if (8 * n >= left) p[n][i] = 0;
        }
      }
    }
    float ds[2 * kKeys][4];
#pragma unroll
    for (int n = 0; n < kKeys; n += kMany) {
      float sums[1][2 * kMany][4] = {};
      dout.template multiply<kMany>(sums, v_tile, offsets, n);
#pragma unroll
      for (int i = 0; i < 8 * kMany; ++i) {
        ds[2 * n + i / 4][i % 4] =
            p[2 * n + i / 4][i % 4] * fmaf(sums[0][i / 4][i % 4], dp_factor, scaled_delta[i % 4 / 2]);
      }
    }
    BlockA ds_block[kKeys];
    float undo[2];
    to_scaled_blocks<Arithmetic>(ds_block, ds, undo);
    const float dq_factor = shape.signed_scale * power_of_two(k_exponent + x - 2 * kTop);
    accumulate<Arithmetic, kColumns>(dq, ds_block, k_tile, offsets, {undo[0] * dq_factor, undo[1] * dq_factor});

    if constexpr (Config::kStages == 1) {
      __syncthreads();  // (4)
      if (step + 1 < end) load_step(step + 1);
      ptx::commit_copies();
    }
  }

  const QueryBlock<Config::kRows> done(params, block_index_anew());
  const int thread = ptx::thread_anew();
  const std::int64_t part = static_cast<std::int64_t>(done.head) * params.split.chunks + done.chunk;
  const bool whole = params.split.chunks == 1;
  float* rows[2] = {};
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = done.tile * Config::kRows + thread / 32 * 16 + thread % 32 / 4 + 8 * h;
    if (row >= shape.seq_q) continue;
    rows[h] = whole ? params.first.at(done.head / shape.heads_q, done.head % shape.heads_q, row)
                    : params.partial + (part * shape.padded_q + row) * kColumns;
  }
  const int width = whole ? shape.head_dim : kColumns;
  store_gradient<kColumns>(dq, rows[0], rows[1], width, !whole || params.pairs_first, thread % 4);
}

}  // namespace syslab::attention::fp32
