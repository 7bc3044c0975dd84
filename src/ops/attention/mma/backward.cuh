// What the kernels of flash_mma's backward passes share: the layout of fp32 workspace, the statistics of rows, and how
// gradients leave registers.
//
//   P_ij = exp(scale·S_ij − L_i)      dV = Pᵀ·dO      dP = dO·Vᵀ      δ_i = Σ_d dO_id·O_id
//   dS = P∘(dP − δ)                   dQ = scale·dS·K                 dK = scale·dSᵀ·Q
//
// (Dao, "FlashAttention-2", 2023, algorithm 2.) P is exp2 of one multiply-add, scale·log₂e·S − log₂e·L. The
// accumulators of dP begin at −δ, so that dS is one multiplication. dQ and dK are multiplied by scale once, when they
// are written.
//
// What waits for what. Nothing here waits; the barriers are those of the kernels. What each function needs of them:
//
//   copy_rows_async       neither commits nor waits, and all threads copy parts of every row. Left: a barrier between
//                         the last read of the tile and this copy. Landed: a wait of each thread, then a barrier.
//   accumulator_to_tile   stores a warp's part of the tile. Left: a barrier after the last read of the old content.
//   tile_to_rows          reads what all warps have stored. Landed: a barrier of the block before it.
//   make_statistics       one lane of a row stores to `copy`. Landed: a barrier before other lanes of the warp read it.
//   add_fragment          atomic, since many blocks add to the same fragments. An earlier kernel has set them to zero.
//
// Kernels of a pass are ordinary launches in one stream: each finds what those before it have written.
#pragma once

#include <cstdint>
#include <type_traits>

#include "device/cuda/prepared_kernel.cuh"
#include "device/cuda/ptx.cuh"
#include "ops/attention/mma/backward_kernels.hpp"
#include "ops/attention/mma/tile.cuh"

namespace syslab::attention::flash {

template <typename T, typename Pointer>
__device__ __forceinline__ T* rows_of(const BasicOperand<Pointer>& operand, int b, int h, int row) {
  return static_cast<T*>(operand.data) + b * operand.batch + h * operand.head +
         static_cast<std::int64_t>(row) * operand.row;
}

// Asynchronous copy of rows [row, row + kRows) of one head to a tile; rows from `rows` on and columns from `columns` on
// become zeros. Like copy_tile_async, but everything is computed anew at every call: these kernels have no register
// left to keep a thread's place in the tile across a loop.
template <typename T, int kRows, int kColumns, int kThreads>
__device__ __forceinline__ void copy_rows_async(std::uint32_t tile, const Operand& operand, int b, int h, int row,
                                                int rows, int columns) {
  using Tile = SharedTile<kColumns>;
  constexpr int kDown = kThreads / Tile::kChunks;
  static_assert(kThreads % Tile::kChunks == 0 && kRows % kDown == 0);
  const int thread = ptx::thread_anew();
  const int first = thread / Tile::kChunks, chunk = thread % Tile::kChunks;
  const T* from = rows_of<const T>(operand, b, h, row) + chunk * 8;
  const int valid_rows = chunk * 8 < columns ? rows - row - first : 0;
#pragma unroll
  for (int i = 0; i < kRows; i += kDown) {
    const bool valid = i < valid_rows;
    const std::uint32_t to = kDown % 8 == 0 ? tile + Tile::offset(first, chunk) + i * Tile::kRowBytes
                                            : tile + Tile::offset(first + i, chunk);
    ptx::copy_async_16(to, from + static_cast<std::int64_t>(valid ? first + i : 0) * operand.row, valid);
  }
}

// value += A·B of kDepth blocks of 16. load_a(registers, i, k) gives A's 16×16 block of row block i, load_b(registers,
// j, k) the 16×16 block of B with column blocks 2j and 2j + 1.
template <typename T, int kDepth, int kRowBlocks, int kColumnBlocks, typename LoadA, typename LoadB>
__device__ __forceinline__ void multiply(float (&value)[kRowBlocks][kColumnBlocks][4], const LoadA& load_a,
                                         const LoadB& load_b) {
  static_assert(kColumnBlocks % 2 == 0);
#pragma unroll
  for (int k = 0; k < kDepth; ++k) {
    std::uint32_t a[kRowBlocks][4];
#pragma unroll
    for (int i = 0; i < kRowBlocks; ++i) load_a(a[i], i, k);
#pragma unroll
    for (int j = 0; j < kColumnBlocks / 2; ++j) {
      std::uint32_t b[4];
      load_b(b, j, k);
#pragma unroll
      for (int i = 0; i < kRowBlocks; ++i) {
        ptx::mma_16816<T>(value[i][2 * j], a[i], b[0], b[1]);
        ptx::mma_16816<T>(value[i][2 * j + 1], a[i], b[2], b[3]);
      }
    }
  }
}

// --- accumulators ----------------------------------------------------------------------------------------------------

// Byte offset of this lane's two columns of row lane / 4 of a tile's first 16×8 block, and of the block `across`
// further.
template <typename Tile>
__device__ __forceinline__ std::uint32_t accumulator_first(int lane) {
  return Tile::offset(lane / 4, 0) + static_cast<std::uint32_t>(lane % 4 * 4);
}
template <typename Tile>
__device__ __forceinline__ std::uint32_t accumulator_block(std::uint32_t first, int across) {
  return (first ^ static_cast<std::uint32_t>(across % Tile::kSpan << 4)) + across / Tile::kSpan * (Tile::kSpan * 16);
}

// fp32 parts are stored as accumulators lie in registers, 16×8 blocks in row-major order, so that what a warp writes or
// adds is 512 contiguous bytes. Where vectors can be added to memory (sm_90) a lane's four values are adjacent;
// elsewhere a warp's 32.
inline constexpr int kFragment = 128;
__device__ __forceinline__ int fragment_offset(int lane, int c) {
#if __CUDA_ARCH__ >= 900
  return lane * 4 + c;
#else
  return c * 32 + lane;
#endif
}

__device__ __forceinline__ void add_fragment(float* fragment, int lane, const float (&value)[4]) {
#if __CUDA_ARCH__ >= 900
  ptx::reduce_add(fragment + fragment_offset(lane, 0), value);
#else
#pragma unroll
  for (int c = 0; c < 4; ++c) ptx::reduce_add(fragment + fragment_offset(lane, c), value[c]);
#endif
}

__device__ __forceinline__ void store_fragment(float* fragment, int lane, const float (&value)[4]) {
#pragma unroll
  for (int c = 0; c < 4; ++c) fragment[fragment_offset(lane, c)] = value[c];
}

// Stores an accumulator times `scale` to a tile in shared memory, as T.
template <typename T, typename Tile, int kRowBlocks, int kColumnBlocks>
__device__ __forceinline__ void accumulator_to_tile(const float (&value)[kRowBlocks][kColumnBlocks][4], float scale,
                                                    std::uint32_t tile, int row, int column) {
  const std::uint32_t first =
      tile + row * Tile::kRowBytes +
      accumulator_block<Tile>(accumulator_first<Tile>(static_cast<int>(threadIdx.x % 32)), column / 8);
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i) {
#pragma unroll
    for (int j = 0; j < kColumnBlocks; ++j) {
      const std::uint32_t at = accumulator_block<Tile>(first, j) + i * 16 * Tile::kRowBytes;
      ptx::store_shared(at, ptx::pack<T>(value[i][j][0] * scale, value[i][j][1] * scale));
      ptx::store_shared(at + 8 * Tile::kRowBytes, ptx::pack<T>(value[i][j][2] * scale, value[i][j][3] * scale));
    }
  }
}

// Stores that tile to rows [row, rows) of one head, 16 bytes a thread at a time.
template <typename T, typename Tile, int kRows, int kThreads>
__device__ __forceinline__ void tile_to_rows(const std::uint8_t* tile, const Result& result, int b, int h, int row,
                                             int rows, int columns) {
  T* to = rows_of<T>(result, b, h, row);
  for (int index = static_cast<int>(threadIdx.x); index < kRows * Tile::kChunks; index += kThreads) {
    const int r = index / Tile::kChunks, chunk = index % Tile::kChunks;
    if (row + r < rows && chunk * 8 < columns) {
      *reinterpret_cast<uint4*>(to + static_cast<std::int64_t>(r) * result.row + chunk * 8) =
          *reinterpret_cast<const uint4*>(tile + Tile::offset(r, chunk));
    }
  }
}

// --- statistics of rows ----------------------------------------------------------------------------------------------

// Statistics of rows 2i and 2i + 1 are adjacent: −log₂e·L of both, then −δ of both. A row that sees no key, or lies
// beyond the last, has −∞ and 0, which makes its P and its dS exactly 0.
__device__ __forceinline__ int statistics_offset(int row) { return row / 2 * 4 + row % 2; }

template <typename T>
__device__ __forceinline__ float dot_of_pairs(std::uint32_t a, std::uint32_t b) {
  float2 x, y;
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    x = {__uint_as_float(a << 16), __uint_as_float(a & 0xffff0000U)};
    y = {__uint_as_float(b << 16), __uint_as_float(b & 0xffff0000U)};
  } else {
    x = __half22float2(reinterpret_cast<const __half2&>(a));
    y = __half22float2(reinterpret_cast<const __half2&>(b));
  }
  return fmaf(x.x, y.x, x.y * y.y);
}

// Statistics of rows [first, first + kRows) by one warp, to workspace and, if it is not null, to `copy`.
template <typename T, int kHeadDim, int kRows>
__device__ __forceinline__ void make_statistics(const BackwardParams& p, int b, int h, int first, float* copy) {
  constexpr int kLanes = kHeadDim / 8;  // of a row
  static_assert(32 % kLanes == 0 && kRows % (32 / kLanes) == 0);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int column = lane % kLanes * 8;
  float* all = p.statistics + (static_cast<std::int64_t>(b) * p.heads_q + h) * p.rows_q * 2;
#pragma unroll 4
  for (int i = 0; i < kRows; i += 32 / kLanes) {
    const int row = first + i + lane / kLanes;
    float delta = 0.0F;
    if (row < p.seen.seq_q && column < p.head_dim) {
      const uint4 x = *reinterpret_cast<const uint4*>(rows_of<const T>(p.out, b, h, row) + column);
      const uint4 y = *reinterpret_cast<const uint4*>(rows_of<const T>(p.dout, b, h, row) + column);
      delta =
          dot_of_pairs<T>(x.x, y.x) + dot_of_pairs<T>(x.y, y.y) + dot_of_pairs<T>(x.z, y.z) + dot_of_pairs<T>(x.w, y.w);
    }
#pragma unroll
    for (int other = 1; other < kLanes; other *= 2) delta += __shfl_xor_sync(~0U, delta, other);
    if (lane % kLanes == 0) {
      constexpr float kLog2E = 1.4426950408889634F;
      const float lse = row < p.seen.seq_q ? p.lse[b * p.lse_batch + h * p.lse_head + row * p.lse_row] : -INFINITY;
      const float negated_lse = lse == -INFINITY ? -INFINITY : -lse * kLog2E;
      const float negated_delta = lse == -INFINITY ? 0.0F : -delta;
      const int at = statistics_offset(row);
      all[at] = negated_lse, all[at + 2] = negated_delta;
      if (copy != nullptr) {
        const int to = statistics_offset(row - first);
        copy[to] = negated_lse, copy[to + 2] = negated_delta;
      }
    }
  }
}

// --- launching -------------------------------------------------------------------------------------------------------

using PreparedBackward = device::PreparedKernel<BackwardParams>;

inline void launch_backward_kernel(PreparedBackward& kernel, int threads, const BackwardParams& params,
                                   BackwardGrid grid, device::Stream stream) {
  const dim3 blocks(static_cast<unsigned>(grid.blocks), static_cast<unsigned>(grid.parts));
  kernel.launch(blocks, threads, stream, params);
}

}  // namespace syslab::attention::flash
