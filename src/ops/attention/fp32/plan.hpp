// How the fp32 rungs split their work (see fp32/kernels.hpp), and the memory needed. Pure arithmetic: the same on every
// machine, so results and workspaces are too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/attention/attention.hpp"

namespace syslab::attention::fp32 {

// Blocks resident at a time on the GPU assumed by plans: 132 multiprocessors with two each.
inline constexpr int kPlannedBlocks = 264;

// Columns of the planes: the first of these that holds a head.
inline constexpr std::array kColumnsOfPlanes{16, 32, 64, 128};
int columns_of(const Problem& problem);
// Rows per block, by columns: of the forward pass, and of the two backward passes.
constexpr int forward_rows(int columns) { return columns <= 32 ? 128 : 64; }
// Keys at a time of the forward pass.
constexpr int forward_keys(int columns) { return columns <= 64 ? 64 : 16; }
inline constexpr int kGradientRows = 64;

struct Cut {
  int tiles = 1;   // of a chunk
  int chunks = 1;  // of the longest range
};

// `lengths`: of each block's range, in tiles of 64 rows, for one head. `tile_us`: approximate time of a block per tile
// while all slots are busy; `block_bytes`: partial results that a chunk of a split range writes. Chooses the cut that
// finishes first with blocks taken in order onto kPlannedBlocks slots: total/slots + longest/2, or the longest if all
// start at once.
Cut cut(std::span<const int> lengths, std::int64_t heads, double tile_us, double block_bytes);

}  // namespace syslab::attention::fp32
