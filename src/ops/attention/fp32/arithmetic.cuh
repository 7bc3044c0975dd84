// Two ways to multiply fp32 matrices on tensor cores, with one interface, so that the same attention kernels serve
// both.
//
//   Half3  x·2^s = high + low, both fp16; x·y ≈ high·high + (high·low + low·high). The omitted low·low and the
//          error of the two roundings are each about 2⁻²⁴ of |x||y|, as in fp32. The small products have their own
//          accumulator, because the tensor core truncates at every addition: the large one is then truncated once for
//          every 16 terms, not three times. Sums over many blocks are added up outside the tensor core, in fp32.
//          2^s brings a tile's largest value to [2¹⁴, 2¹⁵): values down to 2⁻¹⁶ of it keep all 24 bits, smaller ones
//          have an absolute error of at most 2⁻⁴⁰ of the largest.
//   Tf32   both operands rounded to eleven bits: one product, a relative error of about 4·10⁻⁴.
//
// A value takes four bytes in either: a plane tile of kTileRows rows of kColumns values has the same layout in
// global as in shared memory, so a copy is linear. A row is a run of 16-byte chunks: Half3 the high halves, then the
// low; Tf32 the values in order. Chunk c of row r is stored at place c XOR twist(r), so that the same chunk of eight
// neighbouring rows uses all banks once.
//
// Ootomo & Yokota, "Recovering single precision accuracy from Tensor Cores" (2022); NVIDIA's CUTLASS, "3xTF32".
#pragma once

#include <cstdint>

#include "device/cuda/ptx.cuh"

namespace syslab::attention::fp32 {

// A 16×16 block of A in the registers of mma.sync, in two parts: high and low halves, or columns 0–7 and 8–15. A block
// of B is as large; each of its parts is of four registers, r[2·n + i] being b_i of columns 8·n … 8·n+7.
struct BlockA {
  std::uint32_t r[2][4];
};

template <int kColumns>
struct PlaneTile {
  static_assert(kColumns == 16 || kColumns % 32 == 0);
  static constexpr int kRowBytes = 4 * kColumns;
  static constexpr int kChunks = kColumns / 4;
  static constexpr int kSpan = kColumns == 16 ? 4 : 8;  // chunks that the twist exchanges
  static constexpr int kRepeat = kColumns == 16 ? 2 : 1;

  __host__ __device__ static constexpr int twist(int row) { return row / kRepeat % kSpan; }
  __host__ __device__ static constexpr std::uint32_t offset(int row, int chunk) {
    return static_cast<std::uint32_t>(row * kRowBytes + ((chunk ^ twist(row)) << 4));
  }
  // From the address of a lane's first row and chunk 0 or 1 to the same lane's in the block `down` 16 rows further and
  // an even number of chunks across. The twist repeats every eight rows, so down is an addition.
  __device__ static std::uint32_t step(std::uint32_t first, int chunk, int down) {
    return (first ^ ((chunk % kSpan) << 4)) + (chunk / kSpan) * (kSpan * 16) + down * 16 * kRowBytes;
  }
};

// The first addresses of lane l for ldmatrix, as offsets into a tile.
template <int kColumns>
struct LaneOffsets {
  std::uint32_t a;        // rows of the tile are rows of A; or, transposed, the summed dimension of B
  std::uint32_t b;        // rows of the tile are columns of B
  std::uint32_t down[2];  // Tf32's B with rows the summed dimension, keys 2t and 2t+1

  __device__ explicit LaneOffsets(int lane) {
    using Tile = PlaneTile<kColumns>;
    a = Tile::offset(lane & 15, lane >> 4);
    b = Tile::offset((lane & 7) + ((lane >> 4) << 3), (lane >> 3) & 1);
    const int group = lane >> 2, pair = lane & 3;
    for (int i = 0; i < 2; ++i) down[i] = Tile::offset(2 * pair + i, group >> 2) + (group & 3) * 4;
  }
};

struct Half3 {
  static constexpr bool kScaled = true;
  template <int kColumns>
  __device__ static constexpr int chunk(int part, int block) {
    return part * (kColumns / 8) + 2 * block;
  }

  // A part of a block of B. Its rows, the summed dimension, are those of `tile` from 16·down on; `across` counts 16
  // columns.
  template <int kColumns>
  __device__ static void load_summed_rows(std::uint32_t (&r)[4], std::uint32_t tile, const LaneOffsets<kColumns>& lane,
                                          int part, int across, int down) {
    ptx::load_matrices_transposed(r, PlaneTile<kColumns>::step(tile + lane.a, chunk<kColumns>(part, across), down));
  }

  // sums[m] = Σ_k a(m, k)·b(k) for 16·kDown rows and 16·kWide columns; load(r, part, k, w) fetches a part of b(k).
  template <int kDown, int kWide, int kCount, typename A, typename Load>
  __device__ static void multiply(float (&sums)[kDown][2 * kWide][4], const A& a, const Load& load) {
    if constexpr (kDown > 1) {
      // The small products first, while the sum is small, so that only the few large products are truncated against a
      // large sum. Loads the high parts of B twice, which with two blocks of A for each is cheaper than the registers
      // of a second accumulator.
      static_assert(kWide == 1);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        std::uint32_t high[4], low[4];
        load(high, 0, k, 0);
        load(low, 1, k, 0);
#pragma unroll
        for (int m = 0; m < kDown; ++m) add(sums[m], 0, a(m, k).r[1], high);
#pragma unroll
        for (int m = 0; m < kDown; ++m) add(sums[m], 0, a(m, k).r[0], low);
      }
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        std::uint32_t high[4];
        load(high, 0, k, 0);
#pragma unroll
        for (int m = 0; m < kDown; ++m) add(sums[m], 0, a(m, k).r[0], high);
      }
    } else {
      float small[2 * kWide][4] = {};
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        const BlockA left = a(0, k);
#pragma unroll
        for (int w = 0; w < kWide; ++w) {
          std::uint32_t high[4], low[4];
          load(high, 0, k, w);
          load(low, 1, k, w);
          add(small, w, left.r[1], high);
          add(sums[0], w, left.r[0], high);
          add(small, w, left.r[0], low);
        }
      }
#pragma unroll
      for (int i = 0; i < 8 * kWide; ++i) sums[0][i / 4][i % 4] += small[i / 4][i % 4];
    }
  }
  template <int kTiles>
  __device__ static void add(float (&sums)[kTiles][4], int w, const std::uint32_t (&a)[4],
                             const std::uint32_t (&b)[4]) {
#pragma unroll
    for (int n = 0; n < 2; ++n) ptx::mma_16816<__half>(sums[2 * w + n], a, b[2 * n], b[2 * n + 1]);
  }

  // Two values as high and low halves: x − high is exact, so together they hold 22 bits or more of x.
  __device__ static void split(float x, float y, std::uint32_t& high, std::uint32_t& low) {
    high = ptx::pack<__half>(x, y);
    const float2 back = __half22float2(*reinterpret_cast<const __half2*>(&high));
    low = ptx::pack<__half>(x - back.x, y - back.y);
  }
  // Two neighbouring 16×8 blocks of sums become the 16×16 block of A that has them side by side.
  __device__ static void to_a(BlockA& block, const float (&left)[4], const float (&right)[4]) {
    split(left[0], left[1], block.r[0][0], block.r[1][0]);
    split(left[2], left[3], block.r[0][1], block.r[1][1]);
    split(right[0], right[1], block.r[0][2], block.r[1][2]);
    split(right[2], right[3], block.r[0][3], block.r[1][3]);
  }
};

struct Tf32 {
  static constexpr bool kScaled = false;
  template <int kColumns>
  __device__ static constexpr int chunk(int part, int block) {
    return 4 * block + 2 * part;
  }

  // No load transposes 32-bit elements, so each register is loaded separately. The summed index is permuted
  // within eight (0 2 4 6 1 3 5 7) as to_a() permutes it.
  template <int kColumns>
  __device__ static void load_summed_rows(std::uint32_t (&r)[4], std::uint32_t tile, const LaneOffsets<kColumns>& lane,
                                          int part, int across, int down) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t address =
          PlaneTile<kColumns>::step(tile + lane.down[i & 1], 4 * across + 2 * (i >> 1), down) +
          part * 8 * PlaneTile<kColumns>::kRowBytes;
      asm volatile("ld.shared.u32 %0, [%1];" : "=r"(r[i]) : "r"(address));
    }
  }

  template <int kDown, int kWide, int kCount, typename A, typename Load>
  __device__ static void multiply(float (&sums)[kDown][2 * kWide][4], const A& a, const Load& load) {
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      BlockA left[kDown];
#pragma unroll
      for (int m = 0; m < kDown; ++m) left[m] = a(m, k);
#pragma unroll
      for (int i = 0; i < 2 * kWide; ++i) {
        const int part = i % 2, w = i / 2;
        std::uint32_t r[4];
        load(r, part, k, w);
#pragma unroll
        for (int m = 0; m < kDown; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) {
            ptx::mma_1688_tf32(sums[m][2 * w + n], left[m].r[part], r[2 * n], r[2 * n + 1]);
          }
        }
      }
    }
  }

  __device__ static void to_a(BlockA& block, const float (&left)[4], const float (&right)[4]) {
    constexpr int kOrder[4] = {0, 2, 1, 3};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      block.r[0][i] = ptx::to_tf32(left[kOrder[i]]);
      block.r[1][i] = ptx::to_tf32(right[kOrder[i]]);
    }
  }
};

template <class Arithmetic, int kColumns>
__device__ __forceinline__ void load_a(BlockA& block, std::uint32_t tile, const LaneOffsets<kColumns>& lane, int across,
                                       int down) {
#pragma unroll
  for (int part = 0; part < 2; ++part) {
    const int chunk = Arithmetic::template chunk<kColumns>(part, across);
    ptx::load_matrices(block.r[part], PlaneTile<kColumns>::step(tile + lane.a, chunk, down));
  }
}

// A part of a block of B. Its columns are 16 rows of `tile`.
template <class Arithmetic, int kColumns>
__device__ __forceinline__ void load_b(std::uint32_t (&r)[4], std::uint32_t tile, const LaneOffsets<kColumns>& lane,
                                       int part, int across, int down) {
  const int chunk = Arithmetic::template chunk<kColumns>(part, across);
  ptx::load_matrices(r, PlaneTile<kColumns>::step(tile + lane.b, chunk, down));
}

// Queues the copy of `kBytes` contiguous bytes, both ends aligned to 16. All threads of the block copy a part of it. It
// neither commits nor waits. Landed: each thread waits, then a barrier of the block. Left: before the call, a barrier
// after the last read of the destination.
template <int kBytes, int kThreads>
__device__ __forceinline__ void copy_linear_async(std::uint32_t to, const char* from) {
  static_assert(kBytes % 16 == 0);
  const int first = static_cast<int>(threadIdx.x) * 16;
#pragma unroll
  for (int at = 0; at < kBytes; at += kThreads * 16) {
    if (kBytes % (kThreads * 16) == 0 || first + at < kBytes) ptx::copy_async_16(to + first + at, from + first + at);
  }
}

// 2^x for a product of scales, never infinite, since 0·∞ is NaN.
__device__ __forceinline__ float power_of_two(int x) { return ldexpf(1.0F, x > 127 ? 127 : x); }

}  // namespace syslab::attention::fp32
