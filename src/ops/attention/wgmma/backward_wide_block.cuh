// flash_wgmma, backward of wide heads: the tile shape with the layout of shared memory, the barriers by their names,
// and what a thread knows of its block. What is done there: wgmma/backward_wide.cuh.
#pragma once

#include <cstdint>

#include "device/cuda/ptx.cuh"
#include "device/cuda/wgmma.cuh"
#include "ops/attention/wgmma/backward_block.cuh"
#include "ops/attention/wgmma/backward_products.cuh"
#include "ops/attention/wgmma/plan.hpp"

namespace syslab::attention::wgmma {

// A row of kBackwardTiles with groups by product as a type, and what follows from it.
template <int kIndex, bool kIsOrdered>
struct WideBackwardTile {
  static constexpr BackwardTileShape kShape = kBackwardTiles[kIndex];
  static constexpr bool kKeepsFactors = false;
  static constexpr bool kOrdered = kIsOrdered;
  static constexpr int kHeadDim = kShape.head_dim;
  static constexpr int kQueries = kBackwardQueries, kKeys = kShape.keys();
  static constexpr int kThreads = 128 * 4;
  static constexpr int kLoaderRegisters = 24, kSumRegisters = kShape.sum_registers();
  static constexpr int kDqRegisters = kShape.dq_registers();
  // In a product, since ptxas takes no instruction of more registers than each of 512 threads can begin with.
  static constexpr int kSumColumns = 128;
  static constexpr int kDqColumns = kShape.dq_columns();  // made at a time
  static constexpr int kDqPasses = kHeadDim / kDqColumns;
  static_assert(kQueries == 64 && kKeys == 64 && kDqColumns * kDqPasses == kHeadDim);

  // A tile of 64 rows is panels of 64 rows of kRowBytes; dS is one of 64 keys by 64 queries.
  static constexpr int kPanelColumns = 64, kRowBytes = 2 * kPanelColumns;
  static constexpr int kPanels = kHeadDim / kPanelColumns, kStepsOfPanel = kPanelColumns / 16;
  static constexpr int kQueryPanelBytes = kQueries * kRowBytes, kKeyPanelBytes = kKeys * kRowBytes;
  static constexpr int kQueryBytes = kPanels * kQueryPanelBytes, kKeyBytes = kPanels * kKeyPanelBytes;
  static constexpr int kPBytes = 2 * kKeys * kQueries, kDsBytes = kPBytes, kRowsBytes = 4 * kQueries;
  static constexpr int kDqBytes = 4 * kQueries * kHeadDim;  // of a tile, in global memory
  static constexpr int kStages = 2;                         // of Q, dO and dS

  static constexpr int kKeysAt = 0, kValuesAt = kKeyBytes;
  static constexpr int kQueriesAt = 2 * kKeyBytes, kDoutAt = kQueriesAt + kStages * kQueryBytes;
  static constexpr int kDsAt = kDoutAt + kStages * kQueryBytes, kPAt = kDsAt + kStages * kDsBytes;
  static constexpr int kLseAt = kPAt + kPBytes, kDeltaAt = kLseAt + kStages * kRowsBytes;
  static constexpr int kBarriersAt = kDeltaAt + kStages * kRowsBytes;
  static constexpr int kBarriers = 6 + 6 * kStages;
  static constexpr int kTicketAt = kBarriersAt + 8 * kBarriers, kSharedBytes = kTicketAt + 4;
  static_assert(kSharedBytes == kShape.shared_bytes() && kSharedBytes <= 227 * 1024);
};

template <typename Tile>
struct WideBackwardBarriers {
  std::uint32_t first;

  static constexpr int kQ = 6, kDout = kQ + 2 * Tile::kStages, kDs = kDout + 2 * Tile::kStages;

  __device__ __forceinline__ std::uint32_t at(int index) const { return first + 8 * index; }
  __device__ __forceinline__ std::uint32_t k() const { return at(0); }
  __device__ __forceinline__ std::uint32_t v() const { return at(1); }
  __device__ __forceinline__ std::uint32_t p_full() const { return at(2); }
  __device__ __forceinline__ std::uint32_t p_empty() const { return at(3); }
  __device__ __forceinline__ std::uint32_t turn() const { return at(4); }
  __device__ __forceinline__ std::uint32_t added() const { return at(5); }
  __device__ __forceinline__ std::uint32_t q_full(int slot) const { return at(kQ + 2 * slot); }
  __device__ __forceinline__ std::uint32_t q_empty(int slot) const { return at(kQ + 2 * slot + 1); }
  __device__ __forceinline__ std::uint32_t dout_full(int slot) const { return at(kDout + 2 * slot); }
  __device__ __forceinline__ std::uint32_t dout_empty(int slot) const { return at(kDout + 2 * slot + 1); }
  __device__ __forceinline__ std::uint32_t ds_full(int slot) const { return at(kDs + 2 * slot); }
  __device__ __forceinline__ std::uint32_t ds_empty(int slot) const { return at(kDs + 2 * slot + 1); }
};

// What each thread knows of its block.
template <typename Tile>
struct WideBlock {
  std::uint32_t shared;
  WideBackwardBarriers<Tile> barriers;
  KeyBlock keys;

  // Panels of Q, dO and K are equally far apart. Computed anew at each use: kept across a loop, the descriptors of all
  // products of a step would take more registers than there are.
  __device__ __forceinline__ std::uint64_t operand(int offset) const {
    std::uint32_t origin = shared;
    asm volatile("" : "+r"(origin));
    return ptx::at(ptx::operand<Tile::kRowBytes>(origin, Tile::kQueryPanelBytes), offset);
  }
};

// The slot of a step in a ring of two, and the parity of the ring's round; and the parity where there is one slot.
__device__ __forceinline__ int slot_of(int number) { return number & 1; }
__device__ __forceinline__ std::uint32_t parity_of(int number) { return number >> 1 & 1; }
__device__ __forceinline__ std::uint32_t parity_of_one(int number) { return number & 1; }

}  // namespace syslab::attention::wgmma
