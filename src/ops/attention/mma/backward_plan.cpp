#include "ops/attention/mma/backward_plan.hpp"

#include <limits>
#include <numeric>
#include <vector>

#include "core/integers.hpp"
#include "ops/attention/makespan.hpp"
#include "ops/attention/mma/flash_mma.hpp"
#include "ops/attention/plan_for_lent.hpp"

namespace syslab::attention {

namespace {

// A block's time to start and to write its results, in steps; added to its own steps.
constexpr int kStepsOfABlock = 1;
// The kernel that only splitting into parts needs, and the rate at which parts are written and read again.
constexpr double kSumUs = 2.0, kPartBytesPerUs = 2e6;
// With more blocks than this for each multiprocessor the load is even, and is not computed block by block.
constexpr std::int64_t kSimulatedBackwardTiles = 16;

struct Cost {
  double alone_us = 0, shared_us = 0;  // of a unit
  int resident = 1;                    // blocks on a multiprocessor
  double part_bytes = 0;               // of one block
  int multiprocessors = 1;

  WorkCosts of_work() const { return {.block = 0, .shared = shared_us, .alone = alone_us, .resident = resident}; }
};

// Blocks of at most `steps` steps, or without limit if that is 0; `of_tiles` are the steps of one head's tiles in
// launch order.
Cut cut_with(const std::vector<int>& of_tiles, std::int64_t heads, int steps, const Cost& cost) {
  Cut cut;
  cut.tiles = static_cast<std::int64_t>(of_tiles.size()) * heads;
  cut.steps = steps;
  const int longest = *std::max_element(of_tiles.begin(), of_tiles.end());
  if (steps != 0) cut.parts = ceil_div(longest, steps);

  const bool simulate = cut.tiles <= kSimulatedBackwardTiles * cost.multiprocessors;
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
  cut.predicted_us = simulate ? makespan(units, cost.multiprocessors, cost.of_work())
                              : std::max(all * static_cast<double>(heads) / cost.multiprocessors * cost.shared_us,
                                         (longest + kStepsOfABlock) * cost.alone_us);
  if (steps != 0) cut.predicted_us += kSumUs + 2 * blocks * cost.part_bytes / kPartBytesPerUs;
  return cut;
}

Cut best_cut(const std::vector<int>& of_tiles, std::int64_t heads, const Cost& cost) {
  Cut best = cut_with(of_tiles, heads, 0, cost);
  if (best.tiles > kSimulatedBackwardTiles * cost.multiprocessors) return best;
  const int longest = *std::max_element(of_tiles.begin(), of_tiles.end());
  const std::int64_t all = std::accumulate(of_tiles.begin(), of_tiles.end(), std::int64_t{0}) * heads;
  for (int steps = 1; steps < longest; steps *= 2) {
    if (all / steps > kSimulatedBackwardTiles * cost.multiprocessors) continue;
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
  require_lengths("flash_mma backward", problem);
  const Seen seen = seen_by(problem);
  const std::int64_t heads_q = problem.batch * problem.heads_q, heads_kv = problem.batch * problem.heads_kv;
  const std::int64_t rows_q = round_up<std::int64_t>(seen.seq_q, kBackwardRowPad);
  const std::int64_t rows_k = round_up<std::int64_t>(seen.seq_k, kBackwardRowPad);
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

std::size_t backward_bytes_to_lend(const Problem& problem, bool deterministic) {
  const auto typical = [&](int shared_limit) {
    return backward_plan_for_lent(problem, deterministic, kTypicalMultiprocessors, shared_limit, 0).workspace_bytes();
  };
  return std::max(typical(kTypicalShared), typical(kPortableShared));
}

BackwardPlan backward_plan_for_lent(const Problem& problem, bool deterministic, int multiprocessors, int shared_limit,
                                    std::size_t lent_bytes) {
  struct Key {
    Problem problem;
    bool deterministic = false;
    int multiprocessors = 0, shared_limit = 0;
    bool operator==(const Key&) const = default;
  };
  thread_local KeptPlans<Key, BackwardPlan> kept;
  const auto planned = [&](int of) {
    return kept.get({problem, deterministic, of, shared_limit},
                    [&] { return plan_backward(problem, deterministic, of, shared_limit); });
  };
  return plan_for_lent(planned(multiprocessors), planned(kTypicalMultiprocessors), lent_bytes,
                       [](const BackwardPlan& plan) { return plan.workspace_bytes(); });
}

}  // namespace syslab::attention
