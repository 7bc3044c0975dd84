// How the fp32 rungs cut their work (fp32/kernels.hpp says into what), and what memory they need for it. Pure
// arithmetic: the same on every machine, so results and workspaces are too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/attention/attention.hpp"

namespace syslab::attention::fp32 {

// Blocks that run at a time on the GPU that plans are made for: 132 multiprocessors with two each.
inline constexpr int kPlannedBlocks = 264;

// Columns of the planes: 16, 32, 64 or 128.
int columns_of(const Problem& problem);
// Rows of a block of the forward pass, by columns, and of the two of the backward pass.
constexpr int forward_rows(int columns) { return columns <= 32 ? 128 : 64; }
inline constexpr int kGradientRows = 64;

struct Cut {
  int tiles = 1;   // of a chunk
  int chunks = 1;  // of the longest range
};

// `lengths`: of each block's range, in tiles of 64 rows, for one head. `tile_us`: about what a block takes for a tile
// while all slots are busy; `block_bytes`: what a chunk that is not alone leaves behind. Chooses the cut whose end
// comes first, taking blocks in order onto kPlannedBlocks slots: total/slots + longest/2, or the longest where all
// start at once.
Cut cut(std::span<const int> lengths, std::int64_t heads, double tile_us, double block_bytes);

}  // namespace syslab::attention::fp32
