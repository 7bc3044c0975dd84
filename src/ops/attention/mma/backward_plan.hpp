// How flash_mma's backward passes are cut into blocks: the tiles of their kernels, which tiles meet, and how many
// blocks share a tile's work when there are too few tiles for the GPU. Plain arithmetic, the same on host and device.
//
// The keys kernel makes dK and dV: a block owns a tile of keys and steps over the query tiles that see them, of all the
// query heads that share them. The queries kernel makes dQ: a block owns a tile of queries and steps over the keys they
// see. One head of 8192 tokens is 64 tiles of 128, the longest of which decides; so the steps of a tile are dealt out
// in runs of equal length, *parts*, to blocks that write fp32 results, and a last kernel adds those up in order: the
// sum does not depend on which block was done first. Tile and cut are chosen by a model of the makespan.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/attention/attention.hpp"

namespace syslab::attention {

// Shape of the keys kernel and what it costs. Its warps are key_warps × sharing: `sharing` warps have the same keys,
// and each its part of the queries of a step, and then of the columns of dK and dV.
struct KeysTile {
  int head_dim = 64;  // padded
  int keys = 128;     // of a block
  int queries = 64;   // of a step
  int key_warps = 4;
  int sharing = 1;
  int at_once = 32;      // queries whose scores a warp holds at once; queries / sharing where warps share
  int query_warps = 2;   // of dQ's product: warps along queries, the others along head_dim
  int stages = 2;        // of Q and dO
  bool late_dq = true;   // dQ of a step is made in the next one: a barrier less, and another buffer for dS
  int blocks = 2;        // on a multiprocessor
  double alone_us = 0;   // a step, when the block has a multiprocessor for itself (H100)
  double shared_us = 0;  // multiprocessor time of a step, when it is full

  constexpr int threads() const { return key_warps * sharing * 32; }
};

// Shape of the queries kernel and what it costs.
struct QueriesTile {
  int head_dim = 64;  // padded
  int queries = 128;  // of a block
  int keys = 64;      // of a step
  int warps = 4;      // along queries
  int at_once = 32;   // keys whose scores a warp holds at once
  bool held = true;   // Q and dO stay in registers
  int stages = 2;     // of K and V
  int blocks = 2;     // on a multiprocessor
  double alone_us = 0, shared_us = 0;

  constexpr int threads() const { return warps * 32; }
};

struct BackwardTiles {
  int head_dim = 0;      // padded
  int shared_bytes = 0;  // of a block, that the GPU must allow
  KeysTile fused, keys;
  QueriesTile queries;
};

// The same shape at another cost: dQ is not made.
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

// For every padded head_dim a wide shape, first, and a narrow one, which has more blocks to give away. All but the wide
// one of head_dim 128 fit 99 KB, which every GPU since sm_80 has.
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

// Rows of workspace are padded to whole tiles of any shape.
inline constexpr int kBackwardRowPad = 128;

// --- which tiles meet ------------------------------------------------------------------------------------------------

// Of a problem, what decides it. Query i sees keys j ≤ i + shift, j < seq_k.
struct Seen {
  int seq_q = 1, seq_k = 1;
  int shift = 0;
  int group = 1;  // query heads that share a key/value head
};

Seen seen_by(const Problem& problem);

// The first tile of `queries` rows of which some row sees key `key`; the number of tiles if none does.
constexpr int first_query_tile(const Seen& seen, int key, int queries) {
  const int row = std::max(key - seen.shift, 0);
  return row < seen.seq_q ? row / queries : (seen.seq_q + queries - 1) / queries;
}

// Query tiles that the keys from `first_key` on meet, in all heads of the group.
constexpr int steps_of_keys(const Seen& seen, int first_key, int queries) {
  const int tiles = (seen.seq_q + queries - 1) / queries;
  return (tiles - first_query_tile(seen, first_key, queries)) * seen.group;
}

// Key tiles that `queries` rows from `first_row` on meet.
constexpr int steps_of_queries(const Seen& seen, int first_row, int queries, int keys) {
  const int last = std::min(first_row + queries, seen.seq_q) - 1;
  return (std::max(std::min(seen.seq_k, last + seen.shift + 1), 0) + keys - 1) / keys;
}

// --- the plan --------------------------------------------------------------------------------------------------------

// A kernel's tiles times heads, and into how many parts of how many steps each is cut; steps 0: not cut.
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
  double predicted_us = 0;                                        // of what depends on the choice

  std::size_t workspace_bytes() const { return statistics_bytes + dq_bytes + 2 * dkv_bytes; }
};

// The plan with the least predicted time for a GPU of so many multiprocessors that allows a block `shared_limit` bytes
// (at least kPortableShared). Preconditions: supported head_dim (8·n, 16 … 256). Error(usage) for sequences that the
// kernels do not take.
BackwardPlan plan_backward(const Problem& problem, bool deterministic, int multiprocessors, int shared_limit);
// The best with these tiles; its `tiles` is 0.
BackwardPlan plan_backward(const Problem& problem, bool deterministic, const BackwardTiles& tiles, int multiprocessors);

// What a caller is to lend, without asking a GPU; and the plan of a call on a GPU of so many multiprocessors that was
// lent so much: one that needs no more, if that was what the first says.
std::size_t backward_bytes_to_lend(const Problem& problem, bool deterministic);
BackwardPlan backward_plan_for_lent(const Problem& problem, bool deterministic, int multiprocessors, int shared_limit,
                                    std::size_t lent_bytes);

}  // namespace syslab::attention
