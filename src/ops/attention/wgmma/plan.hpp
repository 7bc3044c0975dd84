// The tiles of flash_wgmma's forward pass, and which of them a problem gets.
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

inline constexpr std::array<ForwardTileShape, 6> kForwardTiles{{
    {64, 128, 3, true},
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
  int section_heads = 0;   // heads whose longest blocks of rows go first, together; 0: one head after another
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

}  // namespace syslab::attention::wgmma
