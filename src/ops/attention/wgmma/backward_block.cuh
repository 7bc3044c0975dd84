// flash_wgmma, backward: what a block is. Its tile shape with the layout of its shared memory, the barriers by their
// names, which keys it owns, and the steps that it goes through. What is done in them: wgmma/backward.cuh. Which keys
// and steps also holds for the blocks of wgmma/backward_wide.cuh.
#pragma once

#include <cstdint>

#include "device/cuda/ptx.cuh"
#include "ops/attention/wgmma/backward_kernels.hpp"
#include "ops/attention/wgmma/plan.hpp"

namespace syslab::attention::wgmma {

// A row of kBackwardTiles as a type, and what follows from it.
template <int kIndex, bool kIsOrdered>
struct BackwardTile {
  static constexpr BackwardTileShape kShape = kBackwardTiles[kIndex];
  static constexpr bool kOrdered = kIsOrdered, kStaged = kOrdered || kShape.staged, kEarlyDq = kShape.early_dq;
  static constexpr bool kKeepsFactors = kShape.keeps_factors;
  static constexpr int kHeadDim = kShape.head_dim;
  static constexpr int kQueries = kBackwardQueries, kGroups = 2, kKeys = kShape.keys(), kStages = 2;
  static constexpr int kQueryStages = kShape.query_stages();  // of Q and L; kStages are those of dO and δ
  static constexpr int kThreads = 128 * (kGroups + 1);
  static constexpr int kLoaderRegisters = 24, kRegisters = 240;
  static constexpr int kDqColumns = kHeadDim / kGroups;  // that a group makes
  static constexpr int kSumColumns = kHeadDim;           // of dK and dV, in a product
  static_assert(kQueries == 64 && kKeys == 64 * kGroups);
  static_assert(!kKeepsFactors || kHeadDim == 64, "dQᵀ has 64 rows, of all columns of a group's 32 queries");

  // A tile of n rows is panels of n rows of kRowBytes; dS is one of 128 rows of 64 queries.
  static constexpr int kPanelColumns = 64, kRowBytes = 2 * kPanelColumns;
  static constexpr int kPanels = kHeadDim / kPanelColumns, kStepsOfPanel = kPanelColumns / 16;
  static constexpr int kQueryPanelBytes = kQueries * kRowBytes, kKeyPanelBytes = kKeys * kRowBytes;
  static constexpr int kQueryBytes = kPanels * kQueryPanelBytes, kKeyBytes = kPanels * kKeyPanelBytes;
  static constexpr int kDsBytes = kKeys * 2 * kQueries, kRowsBytes = 4 * kQueries;
  static constexpr int kAdders = kHeadDim == 64 ? 3 : 2;  // with a slot of shared memory each
  static constexpr int kDqBytes = 4 * kQueries * kHeadDim;

  static constexpr int kKeysAt = 0, kValuesAt = kKeyBytes, kQueriesAt = 2 * kKeyBytes;
  static constexpr int kDoutAt = kQueriesAt + kQueryStages * kQueryBytes, kDsAt = kDoutAt + kStages * kQueryBytes;
  static constexpr int kDqAt = kDsAt + 2 * kDsBytes;
  static constexpr int kLseAt = kDqAt + (kStaged ? kAdders * kDqBytes : 0);
  static constexpr int kDeltaAt = kLseAt + kQueryStages * kRowsBytes, kBarriersAt = kDeltaAt + kStages * kRowsBytes;
  static constexpr int kBarriers = 2 + 2 * kQueryStages + 2 * kStages + 4 + 2 * kAdders;
  static constexpr int kTicketAt = kBarriersAt + 8 * kBarriers;
  static constexpr int kSharedBytes = kTicketAt + 4;
  static_assert(kSharedBytes <= 227 * 1024);
};

template <typename Tile>
struct BackwardBarriers {
  std::uint32_t first;

  __device__ __forceinline__ std::uint32_t at(int index) const { return first + 8 * index; }
  __device__ __forceinline__ std::uint32_t k() const { return at(0); }
  __device__ __forceinline__ std::uint32_t v() const { return at(1); }
  __device__ __forceinline__ std::uint32_t q_full(int stage) const { return at(2 + stage); }
  __device__ __forceinline__ std::uint32_t q_empty(int stage) const { return at(2 + Tile::kQueryStages + stage); }
  __device__ __forceinline__ std::uint32_t dout_full(int stage) const { return at(kAfterQ + stage); }
  __device__ __forceinline__ std::uint32_t dout_empty(int stage) const { return at(kAfterQ + 2 + stage); }
  __device__ __forceinline__ std::uint32_t ds_full(int slot) const { return at(kAfterQ + 4 + slot); }
  __device__ __forceinline__ std::uint32_t ds_empty(int slot) const { return at(kAfterQ + 6 + slot); }
  __device__ __forceinline__ std::uint32_t dq_full(int slot) const { return at(kAfterQ + 8 + slot); }
  __device__ __forceinline__ std::uint32_t dq_empty(int slot) const { return at(kAfterQ + 8 + Tile::kAdders + slot); }
  static constexpr int kAfterQ = 2 + 2 * Tile::kQueryStages;
  static_assert(Tile::kStages == 2 && Tile::kBarriers == kAfterQ + 8 + 2 * Tile::kAdders);
};

// The keys of a block, and the steps that it goes through.
struct KeyBlock {
  int batch, kv_head, key_tile, first_key;
  int tiles;  // of queries, of a head: the last of query_tiles
  int steps;  // tiles of all heads
};

// The heads of a section go together, longest blocks first. Where blocks add in order, those of the last keys go first
// instead. A block then seldom waits for its turn: the block before it in the order, with the next higher keys, began
// as many blocks earlier as the section has heads, and, under a causal mask, at a later tile.
template <typename Tile>
__device__ __forceinline__ KeyBlock key_block_of(const BackwardParams& p, int index) {
  const int of_section = p.section_heads * p.key_tiles, section = index / of_section;
  const int heads_before = section * p.section_heads, within = index - section * of_section;
  const int heads = min(p.section_heads, p.batch * p.heads_kv - heads_before);
  const int head = heads_before + within % heads;
  KeyBlock block;
  block.key_tile = Tile::kOrdered ? p.key_tiles - 1 - within / heads : within / heads;
  block.batch = head / p.heads_kv;
  block.kv_head = head - block.batch * p.heads_kv;
  block.first_key = block.key_tile * Tile::kKeys;
  const int first_row = max(block.first_key - p.shift, 0);
  block.tiles = first_row < p.seq_q ? p.query_tiles - first_row / Tile::kQueries : 0;
  block.steps = block.tiles * p.heads_of_kv;
  return block;
}

// Which block this is. Blocks that add in order are numbered as they begin, so that none waits for one that cannot run.
template <typename Tile>
__device__ __forceinline__ int block_index(std::uint32_t shared) {
  return Tile::kOrdered ? static_cast<int>(ptx::load_shared(shared + Tile::kTicketAt)) : static_cast<int>(blockIdx.x);
}

// How many blocks of the keys behind add to dQ of a tile of queries before this one does, in order.
template <typename Tile>
__device__ __forceinline__ int turn_of(const BackwardParams& p, const KeyBlock& block, int tile) {
  const int last = (tile * Tile::kQueries + Tile::kQueries - 1 + p.shift) / Tile::kKeys;
  return min(last, p.key_tiles - 1) - block.key_tile;
}

// The steps of a block in turn: all tiles of a query head, then the next head.
struct Step {
  int number, head, tile;
  int index;  // of the tile, counted through batches and heads

  __device__ __forceinline__ Step(const BackwardParams& p, const KeyBlock& block)
      : number(0),
        head(block.kv_head * p.heads_of_kv),
        tile(p.query_tiles - block.tiles),
        index((block.batch * p.heads_q + head) * p.query_tiles + tile) {}
  __device__ __forceinline__ void advance(const BackwardParams& p, const KeyBlock& block) {
    ++number, ++tile, ++index;
    if (tile < p.query_tiles) return;
    ++head;
    tile -= block.tiles, index += p.query_tiles - block.tiles;
  }
  // Of the step before.
  __device__ __forceinline__ int index_before(const BackwardParams& p, const KeyBlock& block) const {
    const int skipped = p.query_tiles - block.tiles;
    return index - 1 - (tile == skipped ? skipped : 0);
  }
  // In a ring of slots, one a step: the slot of this step or of one `later`, and the parity of its round.
  template <int kSlots = 2>
  __device__ __forceinline__ int slot(int later = 0) const {
    static_assert(kSlots == 2 || kSlots == 4);
    return (number + later) & (kSlots - 1);
  }
  template <int kSlots = 2>
  __device__ __forceinline__ std::uint32_t parity(int later = 0) const {
    return (number + later) / kSlots & 1;
  }
};

}  // namespace syslab::attention::wgmma
