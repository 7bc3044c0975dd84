// Tiles of 16-bit elements in shared memory, as the tensor-core kernels of attention use them: filled by cp.async, read
// by ldmatrix, free of bank conflicts in both.
//
// A row is kColumns elements in 16-byte chunks. ldmatrix reads one chunk of each of eight consecutive rows at a time.
// If row r simply began at byte r·2·kColumns, those eight chunks would share a few banks. So chunk c of row r is stored
// at place c XOR twist(r), where twist takes as many values as eight rows need to fill all 32 banks.
//
// What waits for what. copy_tile_async() neither commits nor waits. All threads of the block copy parts of every row.
// Landed: each thread waits for its copies, then a barrier of the block; then the tile may be read. Left: a barrier of
// the block after the last read; then the tile may be copied into again.
#pragma once

#include <cstdint>

#include "device/cuda/ptx.cuh"

namespace syslab::attention::flash {

template <int kColumns>
struct SharedTile {
  static_assert(kColumns % 16 == 0);
  static constexpr int kRowBytes = 2 * kColumns;
  static constexpr int kChunks = kColumns / 8;
  // How many chunks the twist permutes, and how many rows share one value of it.
  static constexpr int kSpan = kColumns % 64 == 0 ? 8 : kColumns % 32 == 0 ? 4 : 2;
  static constexpr int kRepeat = 8 / kSpan;

  __device__ static constexpr int twist(int row) { return (row / kRepeat) % kSpan; }
  // Byte offset of a chunk from the tile's base, which is aligned to 128 bytes.
  __device__ static constexpr std::uint32_t offset(int row, int chunk) {
    return static_cast<std::uint32_t>(row * kRowBytes + ((chunk ^ twist(row)) << 4));
  }

  // ldmatrix.x4 of 16×16 elements: each lane's address is that of its row and half in the tile's first 16×16 block,
  // from one of the three functions below; block() of it is the block `across` and `down`. Twist repeats every 8
  // rows, so going down is an addition; going across flips bits that the base leaves zero, so it is an XOR.
  __device__ static std::uint32_t block(std::uint32_t first, int across, int down) {
    constexpr int kBlocks = kSpan / 2;
    return (first ^ ((across % kBlocks) << 5)) + (across / kBlocks) * (kSpan * 16) + down * 16 * kRowBytes;
  }

  // Rows are rows of A, columns are the summed dimension: registers are a0…a3 of mma_16816. With load_matrices_
  // transposed, rows are the summed dimension and columns those of B: b0, b1 of the first 8 columns, then of the next.
  __device__ static std::uint32_t rows_first(int lane) { return offset(lane & 15, lane >> 4); }
  // Rows are columns of B, columns are the summed dimension: b0, b1 of the first 8 rows, then of the next.
  __device__ static std::uint32_t columns_first(int lane) {
    return offset((lane & 7) + ((lane >> 4) << 3), (lane >> 3) & 1);
  }
};

// Queues the copy of rows [first, first + kRows) of a matrix into a tile; rows are `stride` elements apart. Rows from
// `rows` on and columns from `columns` on become zero; nothing outside the matrix is read. `columns` is a multiple of
// 8; `source` and the rows are 16-byte aligned.
template <int kRows, int kColumns, int kThreads, typename T>
__device__ __forceinline__ void copy_tile_async(std::uint32_t tile, const T* source, std::int64_t stride, int first,
                                                int rows, int columns) {
  using Tile = SharedTile<kColumns>;
  constexpr int kAll = kRows * Tile::kChunks;
  const int thread = static_cast<int>(threadIdx.x);
  if constexpr (kThreads % Tile::kChunks == 0 && kAll % kThreads == 0) {
    // A thread keeps its column and goes down.
    constexpr int kDown = kThreads / Tile::kChunks;
    const int row = thread / Tile::kChunks, chunk = thread % Tile::kChunks;
    const T* from = source + (first + row) * stride + chunk * 8;
    const bool inside = chunk * 8 < columns;
    std::uint32_t to = tile + Tile::offset(row, chunk);
#pragma unroll
    for (int i = 0; i < kAll / kThreads; ++i) {
      const bool valid = inside && first + row + i * kDown < rows;
      if constexpr (kDown % 8 == 0) {
        ptx::copy_async_16(to + i * kDown * Tile::kRowBytes, from, valid);
      } else {
        ptx::copy_async_16(tile + Tile::offset(row + i * kDown, chunk), from, valid);
      }
      from += kDown * stride;
      asm volatile(""
                   : "+l"(from));  // one pointer that moves, not one a row kept in registers across the caller's loop
    }
  } else {
#pragma unroll
    for (int i = 0; i < (kAll + kThreads - 1) / kThreads; ++i) {
      const int index = thread + i * kThreads;
      if (kAll % kThreads != 0 && index >= kAll) break;
      const int row = index / Tile::kChunks, chunk = index % Tile::kChunks;
      const bool valid = chunk * 8 < columns && first + row < rows;
      const T* from = source + (first + row) * stride + chunk * 8;
      ptx::copy_async_16(tile + Tile::offset(row, chunk), from, valid);
    }
  }
}

}  // namespace syslab::attention::flash
