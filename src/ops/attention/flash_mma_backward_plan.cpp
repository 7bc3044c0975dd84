#include "ops/attention/flash_mma_backward_plan.hpp"

namespace syslab::attention {

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// `slots` blocks fit the GPU at once, `heads` have the same tiles. A tile is cut if it would take twice as long as its
// share of all the work, which is not taken shorter than kFewest steps: writing and adding up a part costs as much.
template <typename StepsOfTile>
Cut cut(int rows, int rows_of_tile, std::int64_t heads, std::int64_t slots, const StepsOfTile& steps_of_tile) {
  constexpr std::int64_t kFewest = 4;
  std::int64_t longest = 0, all = 0;
  for (int row = 0; row < rows; row += rows_of_tile) {
    const std::int64_t steps = steps_of_tile(row);
    longest = std::max(longest, steps);
    all += steps * heads;
  }
  Cut result;
  result.tiles = ceil_div(rows, rows_of_tile) * heads;
  const std::int64_t share = std::max(ceil_div(all, slots), kFewest);
  if (longest >= 2 * share) {
    result.steps = static_cast<int>(share);
    result.parts = static_cast<int>(ceil_div(longest, share));
  }
  return result;
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

int backward_tiles_for(const Problem& problem, int shared_limit) {
  int index = 0;
  while (kBackwardTiles[static_cast<std::size_t>(index)].head_dim < problem.head_dim ||
         kBackwardTiles[static_cast<std::size_t>(index)].shared_bytes > shared_limit) {
    ++index;
  }
  return index;
}

BackwardPlan plan_backward(const Problem& problem, bool deterministic, int tiles, int multiprocessors) {
  BackwardPlan plan =
      plan_backward(problem, deterministic, kBackwardTiles[static_cast<std::size_t>(tiles)], multiprocessors);
  plan.tiles = tiles;
  return plan;
}

BackwardPlan plan_backward(const Problem& problem, bool deterministic, const BackwardTiles& tiles,
                           int multiprocessors) {
  const Seen seen = seen_by(problem);
  const std::int64_t heads_q = problem.batch * problem.heads_q, heads_kv = problem.batch * problem.heads_kv;
  const std::int64_t rows_q = ceil_div(seen.seq_q, kBackwardRowPad) * kBackwardRowPad;
  const std::int64_t rows_k = ceil_div(seen.seq_k, kBackwardRowPad) * kBackwardRowPad;
  const KeysTile& keys = deterministic ? tiles.keys : tiles.fused;
  const QueriesTile& queries = tiles.queries;

  BackwardPlan plan;
  plan.deterministic = deterministic;
  plan.statistics_bytes = static_cast<std::size_t>(heads_q * rows_q) * 2 * sizeof(float);
  const std::size_t dq_bytes = static_cast<std::size_t>(heads_q * rows_q * tiles.head_dim) * sizeof(float);
  const std::size_t dkv_bytes = static_cast<std::size_t>(heads_kv * rows_k * tiles.head_dim) * sizeof(float);

  plan.keys = cut(seen.seq_k, keys.keys, heads_kv, std::int64_t{multiprocessors} * keys.blocks,
                  [&](int key) { return steps_of_keys(seen, key, keys.queries); });
  if (plan.keys.steps != 0) plan.dkv_bytes = static_cast<std::size_t>(plan.keys.parts) * dkv_bytes;
  if (!deterministic) {
    plan.dq_bytes = dq_bytes;
    return plan;
  }
  plan.queries = cut(seen.seq_q, queries.queries, heads_q, std::int64_t{multiprocessors} * queries.blocks,
                     [&](int row) { return steps_of_queries(seen, row, queries.queries, queries.keys); });
  if (plan.queries.steps != 0) plan.dq_bytes = static_cast<std::size_t>(plan.queries.parts) * dq_bytes;
  return plan;
}

}  // namespace syslab::attention
