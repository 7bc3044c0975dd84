// How flash_mma's backward passes are split into blocks: the tiles of their kernels, which tiles interact, and how many
// blocks share a tile's work when there are too few tiles for the GPU. Pure arithmetic, the same on host and device.
//
// The keys kernel computes dK and dV: a block owns a tile of keys and steps over the query tiles that see them, for all
// query heads that share them. The queries kernel computes dQ: a block owns a tile of queries and steps over the keys
// they see. One head of 8192 tokens has only 64 tiles of 128, and the longest determines the time; so a tile's steps
// are divided into runs of equal length, *parts*, for blocks that write fp32 results, and a last kernel sums those in
// order: the sum does not depend on which block finished first. A model of the makespan chooses tile and cut.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/attention/attention.hpp"

namespace syslab::attention {

// Shape and cost of the keys kernel. Its warps are key_warps × sharing: `sharing` warps have the same keys, and each
// takes its part of a step's queries, and later of the columns of dK and dV.
struct KeysTile {
  int head_dim = 64;  // padded
  int keys = 128;     // of a block
  int queries = 64;   // of a step
  int key_warps = 4;
  int sharing = 1;
  int at_once = 32;      // queries per warp with scores held at once; queries / sharing if warps share
  int query_warps = 2;   // of dQ's product: warps along queries, the others along head_dim
  int stages = 2;        // of Q and dO
  bool late_dq = true;   // a step's dQ is computed in the next one: one barrier fewer, one more buffer for dS
  int blocks = 2;        // on a multiprocessor
  double alone_us = 0;   // time of a step when the block has a multiprocessor to itself (H100)
  double shared_us = 0;  // multiprocessor time of a step when it is full

  constexpr int threads() const { return key_warps * sharing * 32; }
};

// Shape and cost of the queries kernel.
struct QueriesTile {
  int head_dim = 64;  // padded
  int queries = 128;  // of a block
  int keys = 64;      // of a step
  int warps = 4;      // along queries
  int at_once = 32;   // keys per warp with scores held at once
  bool held = true;   // Q and dO stay in registers
  int stages = 2;     // of K and V
  int blocks = 2;     // on a multiprocessor
  double alone_us = 0, shared_us = 0;

  constexpr int threads() const { return warps * 32; }
};

struct BackwardTiles {
  int head_dim = 0;      // padded
  int shared_bytes = 0;  // per block; the GPU must allow it
  KeysTile fused, keys;
  QueriesTile queries;
};

// The same shape at another cost, without dQ.
constexpr KeysTile without_dq(KeysTile tile, double alone_us, double shared_us) {
  tile.alone_us = alone_us, tile.shared_us = shared_us;
  return tile;
}

inline constexpr KeysTile kWideKeys32{.head_dim = 32, .query_warps = 4, .alone_us = 1.7, .shared_us = 1.25};
inline constexpr KeysTile kNarrowKeys32{
    .head_dim = 32, .keys = 64, .query_warps = 4, .blocks = 3, .alone_us = 1.05, .shared_us = 0.7};
inline constexpr KeysTile kWideKeys64{.alone_us = 2.4, .shared_us = 2.06};
inline constexpr KeysTile kNarrowKeys64{.keys = 64, .alone_us = 1.6, .shared_us = 1.35};
inline constexpr KeysTile kWideKeys128{
    .head_dim = 128, .sharing = 2, .late_dq = false, .blocks = 1, .alone_us = 4.2, .shared_us = 4.2};
inline constexpr KeysTile kNarrowKeys128{.head_dim = 128,
                                         .keys = 64,
                                         .queries = 32,
                                         .key_warps = 2,
                                         .sharing = 2,
                                         .at_once = 16,
                                         .late_dq = false,
                                         .blocks = 2,
                                         .alone_us = 1.35,
                                         .shared_us = 1.2};
inline constexpr KeysTile kKeys256{.head_dim = 256,
                                   .keys = 32,
                                   .queries = 32,
                                   .key_warps = 2,
                                   .sharing = 2,
                                   .at_once = 16,
                                   .stages = 1,
                                   .late_dq = false,
                                   .blocks = 2,
                                   .alone_us = 2.5,
                                   .shared_us = 1.5};

// For every padded head_dim first a wide shape, then a narrow one, which gives more blocks. All but the wide one of
// head_dim 128 fit in 99 KB, which every GPU since sm_80 has.
inline constexpr int kPortableShared = 99 * 1024;
inline constexpr int kTypicalShared = 227 * 1024;  // of an H100 or H200
inline constexpr std::array<BackwardTiles, 7> kBackwardTiles{{
    {32,
     kPortableShared,
     kWideKeys32,
     without_dq(kWideKeys32, 1.35, 1.0),
     {.head_dim = 32, .alone_us = 1.0, .shared_us = 0.8}},
    {32,
     kPortableShared,
     kNarrowKeys32,
     without_dq(kNarrowKeys32, 0.6, 0.55),
     {.head_dim = 32, .queries = 64, .blocks = 3, .alone_us = 0.5, .shared_us = 0.4}},
    {64, kPortableShared, kWideKeys64, without_dq(kWideKeys64, 1.9, 1.5), {.alone_us = 1.3, .shared_us = 1.1}},
    {64,
     kPortableShared,
     kNarrowKeys64,
     without_dq(kNarrowKeys64, 1.05, 0.96),
     {.queries = 64, .alone_us = 0.8, .shared_us = 0.8}},
    {128,
     163 * 1024,
     kWideKeys128,
     without_dq(kWideKeys128, 3.4, 3.3),
     {.head_dim = 128, .warps = 8, .at_once = 64, .blocks = 1, .alone_us = 2.2, .shared_us = 2.2}},
    {128,
     kPortableShared,
     kNarrowKeys128,
     without_dq(kNarrowKeys128, 1.1, 1.0),
     {.head_dim = 128, .queries = 64, .alone_us = 1.3, .shared_us = 1.25}},
    {256,
     kPortableShared,
     kKeys256,
     without_dq(kKeys256, 2.1, 1.3),
     {.head_dim = 256, .queries = 64, .keys = 32, .held = false, .stages = 1, .alone_us = 3.0, .shared_us = 2.0}},
}};

// Workspace rows are padded to whole tiles of every shape.
inline constexpr int kBackwardRowPad = 128;

// --- which tiles interact
// ------------------------------------------------------------------------------------------------

// The part of a problem that decides it. Query i sees keys j ≤ i + shift, j < seq_k.
struct Seen {
  int seq_q = 1, seq_k = 1;
  int shift = 0;
  int group = 1;  // query heads that share a key/value head
};

Seen seen_by(const Problem& problem);

// The first tile of `queries` rows with a row that sees key `key`; the number of tiles if there is none.
constexpr int first_query_tile(const Seen& seen, int key, int queries) {
  const int row = std::max(key - seen.shift, 0);
  return row < seen.seq_q ? row / queries : (seen.seq_q + queries - 1) / queries;
}

// Number of query tiles that see any key from `first_key` on, in all heads of the group.
constexpr int steps_of_keys(const Seen& seen, int first_key, int queries) {
  const int tiles = (seen.seq_q + queries - 1) / queries;
  return (tiles - first_query_tile(seen, first_key, queries)) * seen.group;
}

// Number of key tiles seen by `queries` rows from `first_row` on.
constexpr int steps_of_queries(const Seen& seen, int first_row, int queries, int keys) {
  const int last = std::min(first_row + queries, seen.seq_q) - 1;
  return (std::max(std::min(seen.seq_k, last + seen.shift + 1), 0) + keys - 1) / keys;
}

// --- the plan --------------------------------------------------------------------------------------------------------

// A kernel's tiles times heads, and how many parts of how many steps each is cut into; steps 0: not cut.
struct Cut {
  std::int64_t tiles = 0;
  int parts = 1;
  int steps = 0;
  double predicted_us = 0;
};

struct BackwardPlan {
  bool deterministic = true;
  int tiles = 0;  // index in kBackwardTiles
  Cut keys, queries;
  // Workspace, in this order; see BackwardParams.
  std::size_t statistics_bytes = 0, dq_bytes = 0, dkv_bytes = 0;  // dkv_bytes twice: dK and dV
  double predicted_us = 0;                                        // only of what depends on the choice

  std::size_t workspace_bytes() const { return statistics_bytes + dq_bytes + 2 * dkv_bytes; }
};

// The plan with the least predicted time for a GPU with that many multiprocessors and `shared_limit` bytes per block
// (at least kPortableShared). Preconditions: supported head_dim (8·n, 16 … 256). Error(usage) for sequences that the
// kernels do not support.
BackwardPlan plan_backward(const Problem& problem, bool deterministic, int multiprocessors, int shared_limit);
// The best plan with these tiles; its `tiles` is 0.
BackwardPlan plan_backward(const Problem& problem, bool deterministic, const BackwardTiles& tiles, int multiprocessors);

// Workspace that a caller should provide, computed without a GPU; and the plan for a call on a GPU with that many
// multiprocessors and that workspace: a plan that fits, if the workspace has the recommended size.
std::size_t backward_bytes_to_lend(const Problem& problem, bool deterministic);
BackwardPlan backward_plan_for_lent(const Problem& problem, bool deterministic, int multiprocessors, int shared_limit,
                                    std::size_t lent_bytes);

}  // namespace syslab::attention
