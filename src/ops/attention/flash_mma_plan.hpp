// How flash_mma's forward pass divides a problem among the multiprocessors of a GPU: which tile, and whether the keys
// of a row are split among several blocks whose results a second kernel combines.
//
// A GPU of 132 multiprocessors wants some hundreds of blocks of equal work. One head of 2048 queries gives 32 blocks of
// 64 rows, under a causal mask the last of them 32 times as long as the first: split into runs of 256 keys they are 144
// blocks of nearly equal length. A split costs a write and a read of partial results and a second launch, so it is
// chosen by a model of the makespan: blocks are given, in launch order, to the multiprocessor with the least work.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/attention/attention.hpp"

namespace syslab::attention {

// A shape of the kernel (flash_mma_forward.cuh) and what it costs. Microseconds, H100; see docs/performance.md.
struct ForwardTileShape {
  int head_dim = 0;  // that of the problem is padded to it
  int warps = 4;
  int row_tiles = 1;  // of 16 query rows, a warp
  int keys = 64;      // met at a time
  int stages = 2;
  int blocks = 2;  // share a multiprocessor
  bool keep_queries = true;
  double alone_us = 0;   // a tile of keys, when the block has a multiprocessor for itself
  double shared_us = 0;  // multiprocessor time of a tile of keys, when it is full

  constexpr int rows() const { return warps * row_tiles * 16; }
};

// For every padded head_dim a wide one, first, and a narrow one, which has more blocks to give away.
inline constexpr std::array<ForwardTileShape, 7> kForwardTiles{{
    {32, 4, 2, 64, 2, 2, true, 0.86, 0.50},
    {32, 4, 1, 64, 2, 4, true, 0.56, 0.30},
    {64, 4, 2, 64, 2, 2, true, 1.07, 0.74},
    {64, 4, 1, 64, 2, 3, true, 0.84, 0.45},
    {128, 4, 2, 32, 3, 2, false, 0.95, 0.72},
    {128, 4, 1, 64, 2, 2, false, 1.19, 0.90},
    {256, 4, 1, 32, 2, 2, false, 1.30, 1.10},
}};

struct ForwardPlan {
  int tile = 0;  // index in kForwardTiles
  std::int64_t row_blocks = 1;
  std::int64_t splits = 1;         // at most, of a row's keys
  std::int64_t keys_of_split = 0;  // a multiple of the tile's keys
  double predicted_us = 0;

  bool operator==(const ForwardPlan&) const = default;
};

// The plan with the least predicted time. `multiprocessors` ≥ 1. Preconditions: supported head_dim (8·n, 16 … 256).
ForwardPlan plan_forward(const Problem& problem, int multiprocessors);
// That of one choice; `keys_of_split` ≥ seq_k does not split.
ForwardPlan plan_with(const Problem& problem, int tile, std::int64_t keys_of_split, int multiprocessors);
// Partial outputs and log-sum-exps, fp32: one of each for every split. 0 without splits.
std::size_t partial_bytes(const Problem& problem, const ForwardPlan& plan);

// Time until all is done when blocks with these many units of work go, in order, each to the multiprocessor that has
// least: its units take `shared` each, but no block is faster than `alone` a unit.
double makespan(std::span<const int> units, int multiprocessors, double alone, double shared);

}  // namespace syslab::attention
