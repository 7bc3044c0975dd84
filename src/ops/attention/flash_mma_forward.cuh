// flash_mma, forward: FlashAttention-2 (Dao 2023, algorithm 1) on mma.sync and cp.async, for sm_80 and later.
//
// HOW DATA MOVES (a block: 4 warps, 64 or 128 query rows of one head)
//
//   Q ──cp.async──▶ shared ──ldmatrix──▶ A fragments (kept in registers up to head_dim 64)
//     for each tile of 32 or 64 keys, the next ones being copied meanwhile (2 or 3 tiles of K and V in shared memory):
//       K ──ldmatrix──▶ B fragments ─mma─▶ scores, in registers: 16·row_tiles rows × the tile's keys a warp
//       scores → weights exp2(s·scale·log₂e − m), one multiply-add and one ex2 each; rounded to 16 bits they are, as
//       they
//         lie, the A fragments of the second product: P never leaves the registers
//       V ──ldmatrix.trans──▶ B fragments ─mma─▶ O, in registers
//     O/l ──own rows of Q's tile──▶ 16 bytes a lane; L = m·ln 2 + log l
//
//   Warps share K and V and nothing else: one barrier a tile. A wide warp (32 rows) uses each B fragment twice, which
//   is what keeps ldmatrix below the products (see below); a narrow one (16 rows) makes twice as many blocks.
//
// THE MAXIMUM. Softmax needs some m near each row's maximum, not the maximum. The first tile's is taken; later tiles
// are weighed with it at once, and only if a weight comes out larger than kSlack are the tile's scores computed again
// and the maximum raised. That saves the running maximum (a comparison a score and eight shuffles a tile) and the
// rescaling of O; l, and so O and L, are what they are with any m. fp16 holds weights to 65504, fp32 sums more than
// enough.
//
// MASKS. Row r sees keys j ≤ r + shift: tiles beyond a block's last row are not visited, a warp sits out tiles beyond
// its own last row, and only tiles that some row of the warp does not see whole are masked. Blocks with most keys come
// first.
//
// NAPKIN MATHS (H100, a multiprocessor; mma.sync reaches about 2560 flop a cycle, 62 % of wgmma; a score = 4·D flop)
//
//   cycles a score        D = 64   D = 128
//   products              0.100    0.200
//   ex2 (16 a cycle)      0.063    0.063    other pipe: hides behind products of other warps
//   ldmatrix (128 B)      0.063    0.156    ditto (32 rows a warp; with 16, 0.125 and 0.31: bound)
//   issue                 0.06     0.08     4.5 instructions of softmax a score, the products, ldmatrix
//   Perfect overlap would be 575 TFLOP/s at 1.7 GHz; FlashAttention-2 reaches 300–325 and 335–370. Measured:
//   docs/performance.md.
#pragma once

#include <cstdint>

#include "device/cuda.cuh"
#include "ops/attention/flash_mma_kernels.hpp"
#include "ops/attention/flash_mma_plan.hpp"
#include "ops/attention/flash_tile.cuh"

namespace syslab::attention::flash {

// How a block of threads works: kWarps warps own 16·kRowTiles query rows each, and meet kKeys keys at a time, of which
// kStages tiles lie in shared memory. kBlocks blocks share an SM, which bounds the registers. With kKeepQueries the
// query fragments stay in registers; otherwise they are read from shared memory for every tile.
// (A type and not a value: nvcc 13.0 writes host stubs that do not compile for template arguments of class type.)
template <int kIndex>
struct ForwardTile {
  static constexpr ForwardTileShape kShape = kForwardTiles[kIndex];
  static constexpr int kHeadDim = kShape.head_dim, kWarps = kShape.warps, kRowTiles = kShape.row_tiles;
  static constexpr int kKeys = kShape.keys, kStages = kShape.stages, kBlocks = kShape.blocks;
  static constexpr bool kKeepQueries = kShape.keep_queries;
  static constexpr int kRows = kWarps * kRowTiles * 16, kThreads = kWarps * 32;
  static constexpr int kSharedBytes = 2 * kHeadDim * (kRows + 2 * kStages * kKeys);
};

inline constexpr float kLn2 = 0.6931471805599453F;
// A weight may exceed that of the running maximum by so much before the maximum is raised.
inline constexpr float kSlack = 1024.0F;

__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0U, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0U, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(~0U, x, 1);
  return x + __shfl_xor_sync(~0U, x, 2);
}

template <typename T, typename Tile>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
    flash_mma_forward_kernel(const __grid_constant__ ForwardParams p) {
  constexpr int kD = Tile::kHeadDim, kKeys = Tile::kKeys, kRowTiles = Tile::kRowTiles, kStages = Tile::kStages;
  constexpr int kThreads = Tile::kThreads, kRows = Tile::kRows;
  using Layout = SharedTile<kD>;
  extern __shared__ __align__(128) unsigned char shared[];

  // Longest first: the last rows of a head see most keys.
  const int of_head = p.row_blocks * p.splits;
  const int head_index = static_cast<int>(blockIdx.x) / of_head;
  const int item = static_cast<int>(blockIdx.x) % of_head;
  const int split = item / p.row_blocks;
  const int first_row = (p.row_blocks - 1 - item % p.row_blocks) * kRows;
  const int batch = head_index / p.heads_q, head = head_index % p.heads_q;
  const auto visible = [&](int row) { return max(0, min(row + 1 + p.shift, p.seq_k)); };
  const int begin = split * p.keys_of_split;
  const int block_end = visible(min(first_row + kRows, p.seq_q) - 1);
  const int end = p.splits == 1 ? block_end : min(begin + p.keys_of_split, block_end);
  if (split > 0 && begin >= end) return;

  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const T* q = static_cast<const T*>(p.q) + batch * p.q_stride.batch + head * p.q_stride.head;
  const T* k = static_cast<const T*>(p.k) + batch * p.k_stride.batch + head / p.heads_of_kv * p.k_stride.head;
  const T* v = static_cast<const T*>(p.v) + batch * p.v_stride.batch + head / p.heads_of_kv * p.v_stride.head;

  const std::uint32_t q_tile = ptx::shared_address(shared);
  constexpr std::uint32_t kTileBytes = kKeys * Layout::kRowBytes;
  const std::uint32_t k_tiles = q_tile + kRows * Layout::kRowBytes;
  const std::uint32_t v_tiles = k_tiles + kStages * kTileBytes;
  const auto copy_keys = [&](int first, int stage) {
    copy_tile_async<kKeys, kD, kThreads>(k_tiles + stage * kTileBytes, k, p.k_stride.row, first, p.seq_k, p.head_dim);
    copy_tile_async<kKeys, kD, kThreads>(v_tiles + stage * kTileBytes, v, p.v_stride.row, first, p.seq_k, p.head_dim);
  };

  copy_tile_async<kRows, kD, kThreads>(q_tile, q, p.q_stride.row, first_row, p.seq_q, p.head_dim);
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    if (begin + s * kKeys < end) copy_keys(begin + s * kKeys, s);
    ptx::commit_copies();
  }

  const int warp_row = warp * kRowTiles * 16;
  const std::uint32_t q_first = q_tile + warp_row * Layout::kRowBytes + Layout::rows_first(lane);
  const std::uint32_t k_first = Layout::columns_first(lane), v_first = Layout::rows_first(lane);
  std::uint32_t q_kept[Tile::kKeepQueries ? kRowTiles : 1][Tile::kKeepQueries ? kD / 16 : 1][4];
  float out[kRowTiles][kD / 8][4] = {};
  float m[kRowTiles][2] = {}, l[kRowTiles][2] = {};
  const int warp_sees = visible(min(first_row + warp_row + kRowTiles * 16, p.seq_q) - 1);  // at most
  const int warp_all = visible(first_row + warp_row);                                      // at least

  int stage = 0;
  for (int key = begin; key < end; key += kKeys) {
    ptx::wait_copies<kStages - 2>();
    __syncthreads();
    {
      const int next = key + (kStages - 1) * kKeys;
      if (next < end) copy_keys(next, stage == 0 ? kStages - 1 : stage - 1);
      ptx::commit_copies();
    }
    const std::uint32_t k_at = k_tiles + stage * kTileBytes + k_first, v_at = v_tiles + stage * kTileBytes + v_first;
    stage = stage == kStages - 1 ? 0 : stage + 1;
    if constexpr (Tile::kKeepQueries) {
      if (key == begin) {
#pragma unroll
        for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
          for (int d = 0; d < kD / 16; ++d) ptx::load_matrices(q_kept[i][d], Layout::block(q_first, d, i));
        }
      }
    }
    if (key >= warp_sees) continue;

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
      if (key + kKeys > warp_all) {
#pragma unroll
        for (int i = 0; i < kRowTiles; ++i) {
          // Keys of this tile that the lane's two rows see, less the lane's first column.
          int limit[2];
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            limit[h] = visible(first_row + warp_row + i * 16 + h * 8 + lane / 4) - key - 2 * (lane % 4);
          }
#pragma unroll
          for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              if (n * 8 + e % 2 >= limit[e / 2]) scores[i][n][e] = -INFINITY;
            }
          }
        }
      }
    };
    // Weights in place of scores; their sums over this tile.
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
    const auto raise = [&] {
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          float most = -INFINITY;
#pragma unroll
          for (int n = 0; n < kKeys / 8; ++n) most = fmaxf(most, fmaxf(scores[i][n][2 * h], scores[i][n][2 * h + 1]));
          most = quad_max(most) * p.scale_log2;
          if (key == begin) {
            m[i][h] = most == -INFINITY ? 0.0F : most;
          } else if (most > m[i][h]) {
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
    bool look = key == begin;
    do {
      score();
      if (look) raise();
      weigh(sum);
      float most = 0.0F;
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) most = fmaxf(most, fmaxf(sum[i][0], sum[i][1]));
      look = __any_sync(~0U, most > kSlack);
    } while (look);
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

  // A quad has the four parts of a row.
  const bool partial = p.splits > 1 && block_end > p.keys_of_split;
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float sum = quad_sum(l[i][h]);
      const float inverse = sum > 0.0F ? 1.0F / sum : sum == 0.0F ? 0.0F : sum;  // NaN stays
      const int row = first_row + warp_row + i * 16 + h * 8 + lane / 4;
      const float natural = sum == 0.0F ? -INFINITY : (m[i][h] + log2f(sum)) * kLn2;
      if (row < p.seq_q && lane % 4 == 0) {
        if (partial) {
          p.partial_lse[(static_cast<std::int64_t>(split) * p.heads + head_index) * p.seq_q + row] = natural;
        } else {
          p.lse[batch * p.lse_stride.batch + head * p.lse_stride.head + row * p.lse_stride.row] = natural;
        }
      }
#pragma unroll
      for (int n = 0; n < kD / 8; ++n) {
        out[i][n][2 * h] *= inverse;
        out[i][n][2 * h + 1] *= inverse;
      }
      if (partial && row < p.seq_q) {
        float* to =
            p.partial_out + ((static_cast<std::int64_t>(split) * p.heads + head_index) * p.seq_q + row) * p.head_dim;
#pragma unroll
        for (int n = 0; n < kD / 8; ++n) {
          if (n * 8 < p.head_dim) {
            *reinterpret_cast<float2*>(to + n * 8 + lane % 4 * 2) = {out[i][n][2 * h], out[i][n][2 * h + 1]};
          }
        }
      }
    }
  }
  if (partial) return;
  // Through the warp's own rows of the query tile, so that rows leave 16 bytes a lane.
  if (end <= begin) __syncthreads();  // no tile was met: other warps' copies of Q may still land
  __syncwarp();
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
  __syncwarp();
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
void launch_forward(const ForwardParams& params, device::Stream stream) {
  const auto kernel = flash_mma_forward_kernel<T, Tile>;
  device::check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::kSharedBytes),
                "allow the forward pass of flash_mma its shared memory", "cudaFuncSetAttribute");
  const int blocks = params.heads * params.row_blocks * params.splits;
  kernel<<<blocks, Tile::kThreads, Tile::kSharedBytes, device::cuda_stream(stream)>>>(params);
  device::check_launch("flash_mma forward");
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
