// The tiles of flash_wgmma's passes, and which of them a problem gets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/attention/attention.hpp"

namespace syslab::attention::wgmma {

// A shape of the kernel (wgmma/forward.cuh). Registers a thread, of 240 with two groups and 160 with three: keys/2 of
// scores, keys/4 of weights, head_dim/2 of O. Shared memory, of 227 KiB: 2·head_dim·(64·groups + 4·keys) bytes.
struct ForwardTileShape {
  int head_dim = 0;        // that of the problem is padded to it
  int keys = 128;          // met at a time
  int groups = 2;          // warpgroups that compute, 64 query rows each
  bool take_turns = true;  // a group computes its softmax while another has the tensor cores

  constexpr int rows() const { return 64 * groups; }
};

inline constexpr std::array<ForwardTileShape, 7> kForwardTiles{{
    {64, 128, 3, true},
    {64, 128, 2, true},
    {96, 128, 2, true},
    {128, 128, 2, true},
    {128, 176, 2, true},
    {192, 96, 2, false},
    {256, 80, 2, false},
}};

struct ForwardPlan {
  int tile = 0;  // index in kForwardTiles
  std::int64_t row_blocks = 1;
  std::int64_t items = 1;  // blocks of rows of all heads
  int section_heads = 0;   // heads that go together, longest blocks of rows first; 0: one head after another
  std::int64_t grid = 1;   // blocks that stay, at most one a multiprocessor
  bool drawn = false;      // items are drawn from a counter by whom is free, not dealt out

  bool operator==(const ForwardPlan&) const = default;
};

// Items are drawn where those of a causal mask would be dealt out too unevenly: a counter costs a fill before the
// kernel. Preconditions: flash_wgmma_refusal() says nothing. `multiprocessors` ≥ 1.
ForwardPlan plan_forward(const Problem& problem, int multiprocessors);

// Blocks of keys that each item meets, in the order of the kernel.
std::vector<int> lengths_of_items(const Problem& problem, const ForwardPlan& plan);
// The longest that one multiprocessor has to do when blocks go there and back over the items, in blocks of keys.
double dealt_out(std::span<const int> lengths, int multiprocessors);

// A shape of the backward kernels. Registers a thread:
// Groups by keys (wgmma/backward.cuh), of 240: head_dim of dK and dV, 32 each of scores and of dP, 16 each of them
// packed, and head_dim/4 of dQ, not all at a time.
// Groups by product (wgmma/backward_wide.cuh): head_dim/2 of dK or dV, 32 of scores or dP and 16 of them packed; in the
// third group the columns of dQ made at a time, halved.
struct BackwardTileShape {
  int head_dim = 0;                // that of the problem is padded to it
  bool early_dq = false;           // by keys: dQ is queued under dP, for which registers must be left
  bool staged = false;             // by keys: dQ is added from shared memory, not from registers
  bool groups_by_product = false;  // a group makes dV, another dK, a third dQ; not all three of 64 keys

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
    {.head_dim = 64, .early_dq = true},
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
