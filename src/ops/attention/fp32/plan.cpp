#include "ops/attention/fp32/plan.hpp"

#include <algorithm>
#include <limits>

namespace syslab::attention::fp32 {

int columns_of(const Problem& problem) {
  for (const int columns : kColumnsOfPlanes) {
    if (problem.head_dim <= columns) return columns;
  }
  return kColumnsOfPlanes.back();
}

Cut cut(std::span<const int> lengths, std::int64_t heads, double tile_us, double block_bytes) {
  constexpr int kMostChunks = 16;
  constexpr double kBlockUs = 3;         // start, first loads, last stores
  constexpr double kJoinUs = 2;          // another launch, which overlaps with the end of this one
  constexpr double kBytesPerUs = 1.5e6;  // partial results, written and read
  const int longest = lengths.empty() ? 1 : std::max(1, *std::max_element(lengths.begin(), lengths.end()));
  Cut best{longest, 1};
  // Enough blocks for many rounds: splitting would only add work.
  if (static_cast<double>(lengths.size()) * static_cast<double>(heads) > 8.0 * kPlannedBlocks) return best;
  double best_us = std::numeric_limits<double>::infinity();
  for (int chunks = 1; chunks <= std::min(longest, kMostChunks); ++chunks) {
    const int tiles = (longest + chunks - 1) / chunks;
    if ((longest + tiles - 1) / tiles != chunks) continue;
    double blocks = 0, total_us = 0;
    for (const int length : lengths) {
      const int pieces = std::max(1, (length + tiles - 1) / tiles);
      blocks += pieces;
      total_us += pieces * kBlockUs + length * tile_us;
    }
    blocks *= static_cast<double>(heads);
    total_us *= static_cast<double>(heads);
    const double longest_us = kBlockUs + tiles * tile_us;
    // A block alone on a multiprocessor is faster than one of two there.
    double us = blocks <= kPlannedBlocks / 2 ? 0.6 * longest_us
                : blocks <= kPlannedBlocks   ? longest_us
                                             : total_us / kPlannedBlocks + longest_us / 2;
    us = std::max(us, total_us / kPlannedBlocks);
    if (chunks > 1) us += kJoinUs + blocks * block_bytes * 2 / kBytesPerUs;
    if (us < best_us) {
      best_us = us;
      best = {tiles, chunks};
    }
  }
  return best;
}

}  // namespace syslab::attention::fp32
