#include "ops/attention/flash_mma_plan.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

namespace syslab::attention {

namespace {

// Launch, first loads and the way out; the second kernel's; what partial results take to write and to read again.
constexpr double kStartUs = 2.8, kCombineUs = 2.5, kPartialBytesPerUs = 3.0e6;
constexpr std::int64_t kMostSplits = 64;
// Beyond so many blocks for each multiprocessor their order hardly matters.
constexpr std::int64_t kSimulatedBlocks = 8;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t keys_of_block(const Problem& problem, std::int64_t rows, std::int64_t block) {
  return problem.visible_keys(std::min((block + 1) * rows, problem.seq_q) - 1);
}

}  // namespace

double makespan(std::span<const int> units, int multiprocessors, double alone, double shared) {
  std::priority_queue<double, std::vector<double>, std::greater<>> busy;
  for (int i = 0; i < multiprocessors; ++i) busy.push(0);
  double longest = 0;
  for (const int unit : units) {
    const double until = busy.top() + unit * shared;
    busy.pop();
    busy.push(until);
    longest = std::max({longest, until, unit * alone});
  }
  return longest;
}

ForwardPlan plan_with(const Problem& problem, int tile, std::int64_t keys_of_split, int multiprocessors) {
  const ForwardTileShape& shape = kForwardTiles[static_cast<std::size_t>(tile)];
  const std::int64_t rows = shape.rows(), heads = problem.batch * problem.heads_q;
  ForwardPlan plan;
  plan.tile = tile;
  plan.row_blocks = ceil_div(problem.seq_q, rows);
  const std::int64_t most = std::max<std::int64_t>(problem.visible_keys(problem.seq_q - 1), 1);
  plan.keys_of_split = std::min(keys_of_split, ceil_div(most, shape.keys) * shape.keys);
  plan.splits = ceil_div(most, plan.keys_of_split);

  // As the kernel numbers its blocks: splits, and within one the rows that see most keys first.
  std::vector<int> units;
  double total = 0, partial_rows = 0;
  int longest = 0;
  const bool simulate = heads * plan.row_blocks * plan.splits <= kSimulatedBlocks * multiprocessors;
  for (std::int64_t split = 0; split < plan.splits; ++split) {
    for (std::int64_t block = plan.row_blocks - 1; block >= 0; --block) {
      const std::int64_t sees = keys_of_block(problem, rows, block), begin = split * plan.keys_of_split;
      if (split > 0 && begin >= sees) continue;
      const std::int64_t keys = std::min(sees - begin, plan.keys_of_split);
      const int unit = static_cast<int>(ceil_div(keys, shape.keys));
      if (simulate) units.push_back(unit);
      total += unit;
      longest = std::max(longest, unit);
      if (sees > plan.keys_of_split) partial_rows += static_cast<double>(rows);
    }
  }
  if (simulate) {
    std::vector<int> all;
    all.reserve(units.size() * static_cast<std::size_t>(heads));
    for (std::int64_t head = 0; head < heads; ++head) all.insert(all.end(), units.begin(), units.end());
    plan.predicted_us = makespan(all, multiprocessors, shape.alone_us, shape.shared_us);
  } else {
    plan.predicted_us = total * static_cast<double>(heads) / multiprocessors * shape.shared_us;
    plan.predicted_us = std::max(plan.predicted_us, longest * shape.alone_us);
  }
  plan.predicted_us += kStartUs;
  if (plan.splits > 1) {
    const double bytes = 2 * partial_rows * static_cast<double>(heads * problem.head_dim) * sizeof(float);
    plan.predicted_us += kCombineUs + bytes / kPartialBytesPerUs;
  }
  return plan;
}

ForwardPlan plan_forward(const Problem& problem, int multiprocessors) {
  ForwardPlan best;
  best.predicted_us = std::numeric_limits<double>::infinity();
  int head_dim = 0;
  for (const ForwardTileShape& shape : kForwardTiles) {
    if (shape.head_dim >= problem.head_dim && (head_dim == 0 || shape.head_dim < head_dim)) head_dim = shape.head_dim;
  }
  const auto consider = [&](int tile, std::int64_t keys_of_split) {
    const ForwardPlan plan = plan_with(problem, tile, keys_of_split, multiprocessors);
    if (plan.predicted_us < best.predicted_us) best = plan;
  };
  for (std::size_t tile = 0; tile < kForwardTiles.size(); ++tile) {
    const ForwardTileShape& shape = kForwardTiles[tile];
    if (shape.head_dim != head_dim) continue;
    consider(static_cast<int>(tile), std::numeric_limits<std::int32_t>::max());
    const std::int64_t blocks = problem.batch * problem.heads_q * ceil_div(problem.seq_q, shape.rows());
    if (blocks >= 4 * multiprocessors) continue;  // the grid is large enough
    for (std::int64_t keys = shape.keys; keys < problem.seq_k; keys *= 2) {
      if (ceil_div(problem.seq_k, keys) <= kMostSplits) consider(static_cast<int>(tile), keys);
    }
  }
  return best;
}

std::size_t partial_bytes(const Problem& problem, const ForwardPlan& plan) {
  if (plan.splits <= 1) return 0;
  const std::int64_t rows = plan.splits * problem.batch * problem.heads_q * problem.seq_q;
  return static_cast<std::size_t>(rows * (problem.head_dim + 1)) * sizeof(float);
}

}  // namespace syslab::attention
