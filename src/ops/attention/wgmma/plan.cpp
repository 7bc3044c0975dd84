#include "ops/attention/wgmma/plan.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/integers.hpp"
#include "ops/attention/combine.hpp"
#include "ops/attention/makespan.hpp"
#include "ops/attention/plan_for_lent.hpp"

namespace syslab::attention::wgmma {
namespace {

// Of the tile with several blocks a multiprocessor: whether there are as many items as it was measured to be faster
// with.
bool fills(const Problem& problem, const ForwardTileShape& shape, int multiprocessors) {
  constexpr double kItemsOfABlock = 2.5;
  const std::int64_t items = problem.batch * problem.heads_q * ceil_div<std::int64_t>(problem.seq_q, shape.rows());
  return static_cast<double>(items) >= kItemsOfABlock * shape.blocks * multiprocessors;
}

int tile_of(const Problem& problem, int multiprocessors) {
  const auto fits = [&](const ForwardTileShape& shape) { return problem.head_dim <= shape.head_dim; };
  const auto found = std::find_if(kForwardTiles.begin(), kForwardTiles.end(), fits);
  if (found == kForwardTiles.end())
    throw Error(ErrorKind::internal, "flash_wgmma has no tile for " + to_string(problem));
  const auto tile = static_cast<int>(found - kForwardTiles.begin());
  // Another tile of the same head_dim, where it was measured to be faster (docs/performance.md).
  // Of 64: with fewer rows there are fewer keys that a causal mask then hides, which matters if there are few keys. Of
  // many such items three at a time, so that the begin and end of one run beside the products of others.
  constexpr std::int64_t kKeysForFewRows = 1024;
  if (found->head_dim == 64) {
    if (problem.mask == Mask::none || problem.seq_k > kKeysForFewRows) return tile;
    const bool small = problem.seq_q <= kKeysForFewRows && fills(problem, found[2], multiprocessors);
    return small ? tile + 2 : tile + 1;
  }
  // Of 128: wide tiles of keys compute more that a causal mask then hides, and leave no space for the next item's Q,
  // which does not pay off with few keys.
  constexpr std::int64_t kKeysForWide = 4096;
  if (found->head_dim == 128) return problem.mask == Mask::none && problem.seq_k >= kKeysForWide ? tile + 1 : tile;
  return tile;
}

// The number of heads that go together, a power of two. Of long rows: as many as have keys and values that fit in the
// part of the L2 not needed for Q and O. Of short ones, which read each key a few times only: as many as have an item
// for each of the GPU's blocks, so that a key's readers come at the same time (docs/performance/attention.md).
int section_of(const Problem& problem, std::int64_t row_blocks, int slots) {
  constexpr double kSectionBytes = 32 << 20;
  constexpr std::int64_t kKeysOfShortRows = 1024;
  const double group = static_cast<double>(problem.heads_q / problem.heads_kv);
  const double bytes_of_head = 4.0 * static_cast<double>(problem.seq_k) * static_cast<double>(problem.head_dim) / group;
  const double heads = static_cast<double>(problem.batch * problem.heads_q);
  double section = 1;
  const double most_heads = problem.seq_k <= kKeysOfShortRows
                                ? std::min(heads, static_cast<double>(slots) / static_cast<double>(row_blocks))
                                : heads;
  while (section * 2 <= most_heads && section * 2 * bytes_of_head <= kSectionBytes) section *= 2;
  return static_cast<int>(section);
}

// In blocks of keys, 1.2 to 2.4 µs each: the fixed cost of an item, and of one that leaves partial results, and the
// cost of the counter.
constexpr double kItemUnits = 0.5, kPartialItemUnits = 1.0, kCounterUnits = 1.5;
// The second kernel, and the time to write partial results and read them again.
constexpr double kCombineUs = 2.5, kPartialBytesPerUs = 1.5e6;
constexpr std::int64_t kMostSplits = 64;
// With this many items for each multiprocessor there are enough without splits, and with splits no more than that.
constexpr std::int64_t kItemsEnough = 4, kMostItems = 16;
// A prediction must be better by this much: the others were measured.
constexpr double kGainOfSplits = 0.9;

const ForwardTileShape& shape_of(const ForwardPlan& plan) { return kForwardTiles[static_cast<std::size_t>(plan.tile)]; }
// Blocks that the GPU has at a time.
int slots_of(const ForwardPlan& plan, int multiprocessors) { return multiprocessors * shape_of(plan).blocks; }

// Blocks of keys that the last row of a block sees.
std::int64_t blocks_of_keys(const Problem& problem, const ForwardTileShape& shape, std::int64_t row_block) {
  const std::int64_t last = std::min((row_block + 1) * shape.rows(), problem.seq_q) - 1;
  return ceil_div<std::int64_t>(problem.visible_keys(last), shape.keys);
}

// The number of blocks of rows that have this split: the last ones, whose rows see its first key.
std::int64_t row_blocks_of_split(const Problem& problem, const ForwardPlan& plan, std::int64_t split) {
  if (split == 0 || problem.mask == Mask::none) return plan.row_blocks;
  const ForwardTileShape& shape = shape_of(plan);
  const std::int64_t shift = problem.mask == Mask::bottom_right ? problem.seq_k - problem.seq_q : 0;
  const std::int64_t first_row = split * plan.blocks_of_split * shape.keys - shift;
  return plan.row_blocks - std::max<std::int64_t>(first_row, 0) / shape.rows();
}

ForwardPlan with_tile(const Problem& problem, int tile) {
  ForwardPlan plan;
  plan.tile = tile;
  plan.row_blocks = ceil_div<std::int64_t>(problem.seq_q, shape_of(plan).rows());
  plan.items_of_head = plan.row_blocks;
  return plan;
}

void finish(const Problem& problem, int multiprocessors, ForwardPlan& plan) {
  plan.items = plan.items_of_head * problem.batch * problem.heads_q;
  plan.grid = std::min<std::int64_t>(plan.items, slots_of(plan, multiprocessors));
}

constexpr double kUnbeaten = std::numeric_limits<double>::infinity();

// Whether items are drawn, and how long all take; infinite where that is certain to be more than `to_beat`.
void predict(const Problem& problem, int multiprocessors, ForwardPlan& plan, double to_beat = kUnbeaten) {
  const std::vector<int> lengths = lengths_of_items(problem, plan);
  const double of_item = plan.splits > 1 ? kPartialItemUnits : kItemUnits;
  const double all = std::accumulate(lengths.begin(), lengths.end(), of_item * static_cast<double>(lengths.size()));
  plan.predicted_us = kUnbeaten;
  const int slots = slots_of(plan, multiprocessors);
  if (all / slots * shape_of(plan).block_us >= to_beat) return;
  const double dealt = dealt_out(lengths, slots, of_item);
  const double drawn = kCounterUnits + makespan(lengths, slots, {of_item, 1.0, 1.0, 1});
  plan.drawn = drawn < dealt && plan.items > plan.grid;
  plan.predicted_us = std::min(drawn, dealt) * shape_of(plan).block_us;
  if (plan.splits > 1) {
    // Of blocks with several splits, one each.
    const std::int64_t partial = plan.items_of_head - plan.row_blocks + row_blocks_of_split(problem, plan, 1);
    const auto rows = static_cast<double>(partial * shape_of(plan).rows() * problem.batch * problem.heads_q);
    plan.predicted_us += kCombineUs + rows * static_cast<double>(problem.head_dim * 4) / kPartialBytesPerUs;
  }
}

ForwardPlan split_plan(const Problem& problem, int tile, std::int64_t blocks_of_split, int multiprocessors) {
  ForwardPlan plan = with_tile(problem, tile);
  plan.section_heads = section_of(problem, plan.row_blocks, slots_of(plan, multiprocessors));
  plan.blocks_of_split = blocks_of_split;
  plan.splits = ceil_div(blocks_of_keys(problem, shape_of(plan), plan.row_blocks - 1), blocks_of_split);
  for (std::int64_t split = 1; split < plan.splits; ++split) {
    plan.items_of_head += row_blocks_of_split(problem, plan, split);
  }
  finish(problem, multiprocessors, plan);
  return plan;
}

ForwardPlan make_plan(const Problem& problem, int multiprocessors) {
  ForwardPlan best = plan_whole(problem, multiprocessors);
  if (best.items >= kItemsEnough * multiprocessors) return best;
  if (best.predicted_us == 0) predict(problem, multiprocessors, best);
  double to_beat = kGainOfSplits * best.predicted_us;
  for (int tile = 0; tile < static_cast<int>(kForwardTiles.size()); ++tile) {
    const ForwardTileShape& shape = kForwardTiles[static_cast<std::size_t>(tile)];
    if (shape.head_dim != shape_of(best).head_dim || shape.blocks > 1) continue;  // that one is for many items
    const std::int64_t most = ceil_div<std::int64_t>(problem.visible_keys(problem.seq_q - 1), shape.keys);
    for (std::int64_t power = 1; power < most; power *= 2) {
      for (const std::int64_t quarters : {4, 5, 6, 7}) {
        const std::int64_t blocks = power * quarters / 4;
        if (power < 4 && power * quarters % 4 != 0) continue;
        if (blocks >= most || ceil_div(most, blocks) > kMostSplits) continue;
        ForwardPlan plan = split_plan(problem, tile, blocks, multiprocessors);
        if (plan.items > kMostItems * multiprocessors) continue;
        predict(problem, multiprocessors, plan, to_beat);
        if (plan.predicted_us >= to_beat) continue;
        best = plan;
        to_beat = plan.predicted_us;
      }
    }
  }
  return best;
}

}  // namespace

ForwardPlan plan_whole(const Problem& problem, int multiprocessors) {
  ForwardPlan plan = with_tile(problem, tile_of(problem, multiprocessors));
  const int slots = slots_of(plan, multiprocessors);
  plan.section_heads = problem.mask == Mask::none ? 0 : section_of(problem, plan.row_blocks, slots);
  finish(problem, multiprocessors, plan);
  // So many items that their order does not matter, or all of one length: nothing to compute.
  constexpr std::int64_t kManyItems = 1 << 14;
  if (problem.mask != Mask::none && plan.items <= kManyItems) predict(problem, multiprocessors, plan);
  return plan;
}

ForwardPlan plan_split(const Problem& problem, int tile, std::int64_t blocks_of_split, int multiprocessors) {
  ForwardPlan plan = split_plan(problem, tile, blocks_of_split, multiprocessors);
  predict(problem, multiprocessors, plan);
  return plan;
}

std::size_t partial_bytes(const Problem& problem, const ForwardPlan& plan) {
  return flash::partial_bytes(plan.splits, problem.batch * problem.heads_q * problem.seq_q, problem.head_dim);
}

std::vector<int> lengths_of_items(const Problem& problem, const ForwardPlan& plan) {
  const ForwardTileShape& shape = shape_of(plan);
  std::vector<int> lengths;
  lengths.reserve(static_cast<std::size_t>(plan.items));
  const std::int64_t heads = problem.batch * problem.heads_q;
  if (plan.section_heads == 0) {
    for (std::int64_t item = 0; item < plan.items; ++item) {
      lengths.push_back(static_cast<int>(blocks_of_keys(problem, shape, item % plan.row_blocks)));
    }
    return lengths;
  }
  for (std::int64_t head = 0; head < heads; head += plan.section_heads) {
    const std::int64_t together = std::min<std::int64_t>(plan.section_heads, heads - head);
    for (std::int64_t split = 0; split < plan.splits; ++split) {
      const std::int64_t row_blocks = row_blocks_of_split(problem, plan, split);
      for (std::int64_t item = 0; item < together * row_blocks; ++item) {
        std::int64_t blocks = blocks_of_keys(problem, shape, plan.row_blocks - 1 - item / together);
        if (plan.splits > 1) blocks = std::min(blocks - split * plan.blocks_of_split, plan.blocks_of_split);
        lengths.push_back(static_cast<int>(blocks));
      }
    }
  }
  return lengths;
}

double dealt_out(std::span<const int> lengths, int multiprocessors, double of_item) {
  const auto blocks = static_cast<std::size_t>(multiprocessors);
  std::vector<double> sums(blocks);
  for (std::size_t item = 0; item < lengths.size(); ++item) {
    const std::size_t round = item / blocks, place = item % blocks;
    sums[round % 2 == 0 ? place : blocks - 1 - place] += of_item + lengths[item];
  }
  return *std::max_element(sums.begin(), sums.end());
}

ForwardPlan plan_forward(const Problem& problem, int multiprocessors) {
  thread_local KeptPlans<std::pair<Problem, int>, ForwardPlan> kept;
  return kept.get({problem, multiprocessors}, [&] { return make_plan(problem, multiprocessors); });
}

std::size_t forward_bytes_to_lend(const Problem& problem) {
  const std::size_t partial = partial_bytes(problem, plan_forward(problem, kTypicalMultiprocessors));
  // The counter is of use on a GPU with another number of multiprocessors, whatever the plan for a typical one says.
  return partial + (problem.mask == Mask::none && partial == 0 ? 0 : sizeof(unsigned));
}

ForwardPlan forward_plan_for_lent(const Problem& problem, int multiprocessors, std::size_t lent_bytes) {
  thread_local KeptPlans<std::tuple<Problem, int, std::size_t>, ForwardPlan> kept;
  return kept.get({problem, multiprocessors, lent_bytes}, [&] {
    const ForwardPlan own = plan_forward(problem, multiprocessors);
    const ForwardPlan typical = plan_forward(problem, kTypicalMultiprocessors);
    const ForwardPlan& chosen =
        plan_for_lent(own, typical, lent_bytes, [&](const ForwardPlan& plan) { return partial_bytes(problem, plan); });
    if (chosen == own || chosen.splits == 1) return chosen == own ? own : plan_whole(problem, multiprocessors);
    return plan_split(problem, chosen.tile, chosen.blocks_of_split, multiprocessors);
  });
}

int backward_tile_of(const Problem& problem) {
  for (int tile = 0; tile < static_cast<int>(kBackwardTiles.size()); ++tile) {
    if (problem.head_dim <= kBackwardTiles[static_cast<std::size_t>(tile)].head_dim) return tile;
  }
  return -1;
}

int backward_section(const Problem& problem, int multiprocessors) {
  // From one block's addition to the next one's, in steps of 1 to 2 µs each.
  constexpr std::int64_t kStepsOfATurn = 2;
  const std::int64_t heads = problem.batch * problem.heads_kv;
  const std::int64_t steps =
      ceil_div<std::int64_t>(problem.seq_q, kBackwardQueries) * (problem.heads_q / problem.heads_kv);
  return static_cast<int>(std::clamp<std::int64_t>(kStepsOfATurn * multiprocessors / steps, 1, heads));
}

}  // namespace syslab::attention::wgmma
