// How flash_mma's forward pass divides a problem among the multiprocessors of a GPU: which tile, and whether a row's
// keys are split among several blocks with a second kernel to combine their results.
//
// A GPU of 132 multiprocessors needs some hundreds of blocks of equal work. One head of 2048 queries gives 32 blocks of
// 64 rows, under a causal mask the last of them 32 times as long as the first: split into runs of 256 keys they are 144
// blocks of nearly equal length. A split costs a write and a read of partial results and a second launch, so a model of
// the makespan decides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/attention/attention.hpp"
#include "ops/attention/makespan.hpp"

namespace syslab::attention {

// Shape and cost of a kernel (mma/forward.cuh). Microseconds, H100; see docs/performance.md.
struct ForwardTileShape {
  int head_dim = 0;  // the problem's head_dim is padded to it
  int warps = 4;
  int row_tiles = 1;  // of 16 query rows, per warp
  int keys = 64;      // per step of a group
  int groups = 1;     // of warps: each has all rows, and every groups-th run of keys
  int stages = 2;
  int blocks = 2;  // share a multiprocessor
  bool keep_queries = true;
  double start_us = 0;   // launch, first copies and epilogue, once
  double block_us = 0;   // multiprocessor time of these for each further block
  double alone_us = 0;   // a step of keys when the block has a multiprocessor to itself
  double shared_us = 0;  // multiprocessor time of a step of keys when it is full

  constexpr int rows() const { return warps * row_tiles * 16; }
  constexpr int step() const { return keys * groups; }
  constexpr WorkCosts costs() const { return {block_us, shared_us, alone_us, blocks}; }
};

// For every padded head_dim a wide shape, the most efficient; a narrow one with twice as many blocks; and one with
// groups for the lowest latency. Costs are fitted to H100 times of one head with 128 to 8192 queries and of the
// hand-out's grid of 16k tokens; the mean prediction error is 6 %. (A step of keys and values is at most 32 KiB: two of
// them plus the queries fit in the 99 KiB of smaller GPUs.)
inline constexpr std::array<ForwardTileShape, 10> kForwardTiles{{
    {32, 4, 2, 128, 1, 2, 2, true, 3.7, 1.2, 1.54, 1.21},
    {32, 4, 1, 64, 1, 2, 4, true, 2.6, 1.1, 0.62, 0.29},
    {32, 2, 1, 64, 4, 2, 2, true, 2.9, 1.9, 0.89, 0.80},
    {64, 4, 2, 64, 1, 2, 2, true, 4.3, 2.3, 1.26, 0.76},
    {64, 4, 1, 64, 1, 2, 3, true, 3.6, 0.3, 0.90, 0.56},
    {64, 2, 1, 32, 4, 2, 2, true, 3.8, 1.7, 0.83, 0.58},
    {128, 4, 2, 48, 1, 2, 2, false, 6.1, 3.0, 1.43, 1.01},
    {128, 4, 1, 64, 1, 2, 2, false, 2.9, 2.9, 1.55, 0.95},
    {128, 2, 1, 32, 2, 2, 2, true, 3.5, 1.2, 0.80, 0.59},
    {256, 4, 1, 32, 1, 2, 2, false, 11.8, 1.5, 1.69, 1.00},
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
// Error(usage) for sequences that the kernels do not support.
ForwardPlan plan_forward(const Problem& problem, int multiprocessors);
// For tests: the plan for a given choice; `keys_of_split` ≥ seq_k does not split.
ForwardPlan plan_with(const Problem& problem, int tile, std::int64_t keys_of_split, int multiprocessors);
// Bytes of partial outputs and log-sum-exps, fp32: one of each per split. 0 without splits.
std::size_t partial_bytes(const Problem& problem, const ForwardPlan& plan);

// Workspace that a caller should provide, computed without a GPU; and the plan for a call on a GPU with that many
// multiprocessors and that workspace: a plan that fits, if the workspace has the recommended size.
std::size_t forward_bytes_to_lend(const Problem& problem);
ForwardPlan forward_plan_for_lent(const Problem& problem, int multiprocessors, std::size_t lent_bytes);

}  // namespace syslab::attention
