#include "ops/attention/flash_mma_backward_plan.hpp"

#include <limits>
#include <numeric>
#include <queue>
#include <vector>

namespace syslab::attention {

namespace {

// Beside its steps, what a block takes to begin and to write its results, in steps.
constexpr int kStepsOfABlock = 1;
// A kernel that would not be there without parts, and the rate at which they are written and read again.
constexpr double kSumUs = 2.0, kPartBytesPerUs = 2e6;
// With more blocks than this many for each multiprocessor the work is even, and not looked at block by block.
constexpr std::int64_t kSimulatedBlocks = 16;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

struct Cost {
  double alone_us = 0, shared_us = 0;
  int resident = 1;       // blocks on a multiprocessor
  double part_bytes = 0;  // of one block
  int multiprocessors = 1;
};

// Time until all blocks are done. A multiprocessor works its blocks' units at `shared_us` each, but no block is faster
// than `alone_us` a unit. The GPU deals out the first blocks in turn, as many as find room, whatever their length: two
// long ones may well meet; a later one goes where there is least to do.
double makespan(const std::vector<int>& units, const Cost& cost) {
  std::vector<double> busy(static_cast<std::size_t>(cost.multiprocessors));
  const std::size_t dealt = std::min(units.size(), busy.size() * static_cast<std::size_t>(cost.resident));
  double longest = 0;
  for (std::size_t i = 0; i < dealt; ++i) busy[i % busy.size()] += units[i] * cost.shared_us;
  for (const int unit : units) longest = std::max(longest, unit * cost.alone_us);
  std::priority_queue<double, std::vector<double>, std::greater<>> queue(busy.begin(), busy.end());
  for (std::size_t i = dealt; i < units.size(); ++i) {
    const double until = queue.top() + units[i] * cost.shared_us;
    queue.pop();
    queue.push(until);
    longest = std::max(longest, until);
  }
  return std::max(longest, *std::max_element(busy.begin(), busy.end()));
}

// Blocks of `steps` steps at most, or of all if that is 0; `of_tiles` are the steps of one head's tiles in launch
// order.
Cut cut_with(const std::vector<int>& of_tiles, std::int64_t heads, int steps, const Cost& cost) {
  Cut cut;
  cut.tiles = static_cast<std::int64_t>(of_tiles.size()) * heads;
  cut.steps = steps;
  const int longest = *std::max_element(of_tiles.begin(), of_tiles.end());
  if (steps != 0) cut.parts = static_cast<int>(ceil_div(longest, steps));

  const bool simulate = cut.tiles <= kSimulatedBlocks * cost.multiprocessors;
  std::vector<int> units;  // in launch order: parts, within one the heads, within one the tiles
  double all = 0, blocks = 0;
  for (int part = 0; part < cut.parts; ++part) {
    for (std::int64_t head = 0; head < (simulate ? heads : 1); ++head) {
      for (const int tile : of_tiles) {
        const int left = tile - part * steps;
        if (part > 0 && left <= 0) continue;
        const int unit = (steps == 0 ? left : std::clamp(left, 0, steps)) + kStepsOfABlock;
        if (simulate) units.push_back(unit);
        all += unit, ++blocks;
      }
    }
  }
  cut.predicted_us = simulate ? makespan(units, cost)
                              : std::max(all * static_cast<double>(heads) / cost.multiprocessors * cost.shared_us,
                                         (longest + kStepsOfABlock) * cost.alone_us);
  if (steps != 0) cut.predicted_us += kSumUs + 2 * blocks * cost.part_bytes / kPartBytesPerUs;
  return cut;
}

Cut best_cut(const std::vector<int>& of_tiles, std::int64_t heads, const Cost& cost) {
  Cut best = cut_with(of_tiles, heads, 0, cost);
  if (best.tiles > kSimulatedBlocks * cost.multiprocessors) return best;
  const int longest = *std::max_element(of_tiles.begin(), of_tiles.end());
  const std::int64_t all = std::accumulate(of_tiles.begin(), of_tiles.end(), std::int64_t{0}) * heads;
  for (int steps = 1; steps < longest; steps *= 2) {
    if (all / steps > kSimulatedBlocks * cost.multiprocessors) continue;
    const Cut cut = cut_with(of_tiles, heads, steps, cost);
    if (cut.predicted_us < best.predicted_us) best = cut;
  }
  return best;
}

}  // namespace

Seen seen_by(const Problem& problem) {
  Seen seen;
  seen.seq_q = static_cast<int>(problem.seq_q);
  seen.seq_k = static_cast<int>(problem.seq_k);
  seen.shift = problem.mask == Mask::none ? seen.seq_k : problem.mask == Mask::top_left ? 0 : seen.seq_k - seen.seq_q;
  seen.group = static_cast<int>(problem.heads_q / problem.heads_kv);
  return seen;
}

BackwardPlan plan_backward(const Problem& problem, bool deterministic, const BackwardTiles& tiles,
                           int multiprocessors) {
  const Seen seen = seen_by(problem);
  const std::int64_t heads_q = problem.batch * problem.heads_q, heads_kv = problem.batch * problem.heads_kv;
  const std::int64_t rows_q = ceil_div(seen.seq_q, kBackwardRowPad) * kBackwardRowPad;
  const std::int64_t rows_k = ceil_div(seen.seq_k, kBackwardRowPad) * kBackwardRowPad;
  const auto floats = [&](std::int64_t rows) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(tiles.head_dim) * sizeof(float);
  };

  BackwardPlan plan;
  plan.deterministic = deterministic;
  plan.statistics_bytes = static_cast<std::size_t>(heads_q * rows_q) * 2 * sizeof(float);
  const KeysTile& keys = deterministic ? tiles.keys : tiles.fused;
  std::vector<int> steps;
  for (int key = 0; key < seen.seq_k; key += keys.keys) steps.push_back(steps_of_keys(seen, key, keys.queries));
  plan.keys = best_cut(
      steps, heads_kv,
      {keys.alone_us, keys.shared_us, keys.blocks, 2 * static_cast<double>(floats(keys.keys)), multiprocessors});
  if (plan.keys.steps != 0) plan.dkv_bytes = static_cast<std::size_t>(plan.keys.parts) * floats(heads_kv * rows_k);
  plan.predicted_us = plan.keys.predicted_us;
  if (!deterministic) {
    plan.dq_bytes = floats(heads_q * rows_q);
    return plan;
  }

  const QueriesTile& queries = tiles.queries;
  steps.clear();
  for (int row = 0; row < seen.seq_q; row += queries.queries) {
    steps.push_back(steps_of_queries(seen, row, queries.queries, queries.keys));
  }
  std::reverse(steps.begin(), steps.end());  // as they are launched
  plan.queries = best_cut(steps, heads_q,
                          {queries.alone_us, queries.shared_us, queries.blocks,
                           static_cast<double>(floats(queries.queries)), multiprocessors});
  if (plan.queries.steps != 0) plan.dq_bytes = static_cast<std::size_t>(plan.queries.parts) * floats(heads_q * rows_q);
  plan.predicted_us += plan.queries.predicted_us;
  return plan;
}

BackwardPlan plan_backward(const Problem& problem, bool deterministic, int multiprocessors, int shared_limit) {
  int head_dim = 0;
  for (const BackwardTiles& tiles : kBackwardTiles) {
    if (tiles.head_dim >= problem.head_dim && (head_dim == 0 || tiles.head_dim < head_dim)) head_dim = tiles.head_dim;
  }
  BackwardPlan best;
  best.predicted_us = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < kBackwardTiles.size(); ++i) {
    const BackwardTiles& tiles = kBackwardTiles[i];
    if (tiles.head_dim != head_dim || tiles.shared_bytes > shared_limit) continue;
    BackwardPlan plan = plan_backward(problem, deterministic, tiles, multiprocessors);
    plan.tiles = static_cast<int>(i);
    if (plan.predicted_us < best.predicted_us) best = plan;
  }
  return best;
}

}  // namespace syslab::attention
