#include "ops/attention/wgmma/plan.hpp"

#include <algorithm>
#include <utility>

#include "core/integers.hpp"
#include "ops/attention/makespan.hpp"
#include "ops/attention/plan_for_lent.hpp"

namespace syslab::attention::wgmma {
namespace {

int tile_of(const Problem& problem) {
  const auto fits = [&](const ForwardTileShape& shape) { return problem.head_dim <= shape.head_dim; };
  const auto found = std::find_if(kForwardTiles.begin(), kForwardTiles.end(), fits);
  if (found == kForwardTiles.end())
    throw Error(ErrorKind::internal, "flash_wgmma has no tile for " + to_string(problem));
  const auto tile = static_cast<int>(found - kForwardTiles.begin());
  // A second tile of the same head_dim, where it was measured to be faster (docs/performance.md).
  // Of 64: with fewer rows there are fewer keys that a causal mask then hides, which matters if there are few keys.
  constexpr std::int64_t kKeysForFewRows = 1024;
  if (found->head_dim == 64) return problem.mask != Mask::none && problem.seq_k <= kKeysForFewRows ? tile + 1 : tile;
  // Of 128: wide tiles of keys compute more that a causal mask then hides, and leave no space for the next item's Q,
  // which does not pay off with few keys.
  constexpr std::int64_t kKeysForWide = 4096;
  if (found->head_dim == 128) return problem.mask == Mask::none && problem.seq_k >= kKeysForWide ? tile + 1 : tile;
  return tile;
}

// The number of heads with keys and values that fit in the part of the L2 not needed for Q and O: a power of two.
int section_of(const Problem& problem) {
  constexpr double kSectionBytes = 32 << 20;
  const double group = static_cast<double>(problem.heads_q / problem.heads_kv);
  const double bytes_of_head = 4.0 * static_cast<double>(problem.seq_k) * static_cast<double>(problem.head_dim) / group;
  const double heads = static_cast<double>(problem.batch * problem.heads_q);
  double section = 1;
  while (section * 2 <= heads && section * 2 * bytes_of_head <= kSectionBytes) section *= 2;
  return static_cast<int>(section);
}

// In blocks of keys, 1.5 to 2 µs each: the fixed cost of an item, and the cost of the counter.
constexpr double kItemUnits = 0.5, kCounterUnits = 1.5;

ForwardPlan make_plan(const Problem& problem, int multiprocessors) {
  ForwardPlan plan;
  plan.tile = tile_of(problem);
  const int rows = kForwardTiles[static_cast<std::size_t>(plan.tile)].rows();
  plan.row_blocks = (problem.seq_q + rows - 1) / rows;
  plan.items = plan.row_blocks * problem.batch * problem.heads_q;
  plan.section_heads = problem.mask == Mask::none ? 0 : section_of(problem);
  plan.grid = std::min<std::int64_t>(plan.items, multiprocessors);
  // So many items that their order does not matter, or all of one length: nothing to compute.
  constexpr std::int64_t kManyItems = 1 << 14;
  if (problem.mask == Mask::none || plan.items > kManyItems) return plan;
  const std::vector<int> lengths = lengths_of_items(problem, plan);
  const double drawn = makespan(lengths, multiprocessors, {kItemUnits, 1.0, 1.0, 1});
  plan.drawn = drawn + kCounterUnits < dealt_out(lengths, multiprocessors);
  return plan;
}

}  // namespace

std::vector<int> lengths_of_items(const Problem& problem, const ForwardPlan& plan) {
  const ForwardTileShape& shape = kForwardTiles[static_cast<std::size_t>(plan.tile)];
  std::vector<int> lengths;
  const auto add = [&](std::int64_t row_block) {
    const std::int64_t last = std::min((row_block + 1) * shape.rows(), problem.seq_q) - 1;
    lengths.push_back(static_cast<int>((problem.visible_keys(last) + shape.keys - 1) / shape.keys));
  };
  const std::int64_t heads = problem.batch * problem.heads_q;
  if (plan.section_heads == 0) {
    for (std::int64_t item = 0; item < plan.items; ++item) add(item % plan.row_blocks);
    return lengths;
  }
  for (std::int64_t head = 0; head < heads; head += plan.section_heads) {
    const std::int64_t together = std::min<std::int64_t>(plan.section_heads, heads - head);
    for (std::int64_t item = 0; item < together * plan.row_blocks; ++item) {
      add(plan.row_blocks - 1 - item / together);
    }
  }
  return lengths;
}

double dealt_out(std::span<const int> lengths, int multiprocessors) {
  const auto blocks = static_cast<std::size_t>(multiprocessors);
  std::vector<double> sums(blocks);
  for (std::size_t item = 0; item < lengths.size(); ++item) {
    const std::size_t round = item / blocks, place = item % blocks;
    sums[round % 2 == 0 ? place : blocks - 1 - place] += kItemUnits + lengths[item];
  }
  return *std::max_element(sums.begin(), sums.end());
}

ForwardPlan plan_forward(const Problem& problem, int multiprocessors) {
  thread_local KeptPlans<std::pair<Problem, int>, ForwardPlan> kept;
  return kept.get({problem, multiprocessors}, [&] { return make_plan(problem, multiprocessors); });
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
