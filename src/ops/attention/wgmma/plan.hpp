// The tiles of flash_wgmma's passes, and which of them a problem gets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/attention/attention.hpp"

namespace syslab::attention::wgmma {

// A shape of the kernel (wgmma/forward.cuh). Registers a thread, of 136 with one group, 240 with two and 160 with
// three: keys/2 of scores, keys/4 of weights, head_dim/2 of O. Shared memory, of 227 KiB for all blocks of a
// multiprocessor: 2·head_dim·(64·groups + 4·keys) bytes each.
struct ForwardTileShape {
  int head_dim = 0;        // that of the problem is padded to it
  int keys = 128;          // met at a time
  int groups = 2;          // warpgroups that compute, 64 query rows each
  bool take_turns = true;  // a group computes its softmax while another has the tensor cores
  double block_us = 0;     // of a block of keys, on an H100 with few heads (docs/performance/attention.md)
  int blocks = 1;          // of threads, that a multiprocessor has at a time

  constexpr int rows() const { return 64 * groups; }
};

inline constexpr std::array<ForwardTileShape, 8> kForwardTiles{{
    {64, 128, 3, true, 1.4},
    {64, 128, 2, true, 1.2},
    {64, 64, 1, false, 1.1, 3},
    {96, 128, 2, true, 1.35},
    {128, 128, 2, true, 1.5},
    {128, 176, 2, true, 2.05},
    {192, 96, 2, false, 1.5},
    {256, 80, 2, false, 1.6},
}};

struct ForwardPlan {
  int tile = 0;  // index in kForwardTiles
  std::int64_t row_blocks = 1;
  std::int64_t items_of_head = 1;    // a block of rows each, or one split of its keys
  std::int64_t items = 1;            // of all heads
  int section_heads = 0;             // heads that go together, longest blocks of rows first; 0: one head after another
  std::int64_t grid = 1;             // blocks that stay, at most as many as the GPU has at a time
  bool drawn = false;                // items are drawn from a counter by whom is free, not dealt out
  std::int64_t splits = 1;           // at most, of a row's keys
  std::int64_t blocks_of_split = 0;  // of keys; 0: no row's keys are split
  double predicted_us = 0;           // without what every plan costs; 0 if there are so many items that none was made

  bool operator==(const ForwardPlan&) const = default;
};

// Items are drawn where those of a causal mask would be dealt out too unevenly: a counter costs a fill before the
// kernel. Keys are split, as in mma/plan.hpp, where blocks of rows are too few or too uneven for the multiprocessors:
// that costs memory, another kernel, and a write and a read of partial results. Preconditions: flash_wgmma_refusal()
// says nothing. `multiprocessors` ≥ 1.
ForwardPlan plan_forward(const Problem& problem, int multiprocessors);
// The best plan that splits no keys.
ForwardPlan plan_whole(const Problem& problem, int multiprocessors);
// The plan for a given choice. Preconditions: 1 ≤ blocks_of_split, fewer than the last row sees.
ForwardPlan plan_split(const Problem& problem, int tile, std::int64_t blocks_of_split, int multiprocessors);

// Bytes of partial results; 0 without splits.
std::size_t partial_bytes(const Problem& problem, const ForwardPlan& plan);
// Bytes, from a multiple of 16 on, that a caller should lend, computed without a GPU: partial results and a counter.
std::size_t forward_bytes_to_lend(const Problem& problem);
// The plan for a call on a GPU with that many multiprocessors and that workspace: a plan whose partial results fit, if
// the workspace has the recommended size.
ForwardPlan forward_plan_for_lent(const Problem& problem, int multiprocessors, std::size_t lent_bytes);

// Blocks of keys that each item meets, in the order of the kernel.
std::vector<int> lengths_of_items(const Problem& problem, const ForwardPlan& plan);
// The longest that one multiprocessor has to do when blocks go there and back over the items, in blocks of keys; an
// item costs `of_item` of them more than its own.
double dealt_out(std::span<const int> lengths, int multiprocessors, double of_item);

// A shape of the backward kernels. Registers a thread:
// Groups by keys (wgmma/backward.cuh), of 240: head_dim of dK and dV, 32 each of scores and of dP, 16 each of them
// packed, and head_dim/4 of dQ, not all at a time; 3/4·head_dim of V and Kᵀ, if they are kept.
// Groups by product (wgmma/backward_wide.cuh): head_dim/2 of dK or dV, 32 of scores or dP and 16 of them packed; in the
// third group the columns of dQ made at a time, halved.
struct BackwardTileShape {
  int head_dim = 0;                // that of the problem is padded to it
  bool early_dq = false;           // by keys: dQ is queued under dP, for which registers must be left
  bool staged = false;             // by keys: dQ is added from shared memory, not from registers
  bool keeps_factors = false;      // by keys, of 64 columns: V and Kᵀ stay in registers, and dQ is made transposed
  bool groups_by_product = false;  // a group makes dV, another dK, a third dQ; not all three of 64 keys

  // Places for Q. With early_dq S of the next step is queued while dK of the step before has only just ended: in two
  // places that Q would be asked for when it is needed.
  constexpr int query_stages() const { return early_dq ? 4 : 2; }
  constexpr int keys() const { return groups_by_product ? 64 : 128; }  // of a block

  // By product. Of 512 registers, four groups, the loader has 24.
  constexpr int sum_registers() const { return head_dim <= 192 ? 176 : 208; }  // of the groups that make dV and dK
  constexpr int dq_registers() const { return 512 - 24 - 2 * sum_registers(); }
  constexpr int dq_columns() const { return head_dim <= 192 ? head_dim : 64; }  // of dQ made at a time
  // K and V, Q and dO twice each, dS of two steps, and P; statistics of rows, barriers, and a number.
  constexpr int shared_bytes() const {
    const int tile = 2 * 64 * head_dim, scores = 2 * 64 * 64;
    return 6 * tile + 3 * scores + 4 * 4 * 64 + 8 * 18 + 4;
  }
};

inline constexpr std::array<BackwardTileShape, 4> kBackwardTiles{{
    {.head_dim = 64, .early_dq = true, .keeps_factors = true},
    {.head_dim = 128, .staged = true},
    {.head_dim = 192, .groups_by_product = true},
    {.head_dim = 256, .groups_by_product = true},
}};
inline constexpr int kBackwardQueries = 64;  // of a step

// Index in kBackwardTiles; −1 if head_dim is beyond them all.
int backward_tile_of(const Problem& problem);
// The number of key/value heads with blocks that begin in turn and add to dQ in order: large enough that a block begins
// some steps after the one that it has to wait for.
int backward_section(const Problem& problem, int multiprocessors);

}  // namespace syslab::attention::wgmma
