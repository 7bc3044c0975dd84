#include "ops/attention/mma/plan.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/integers.hpp"
#include "ops/attention/combine.hpp"
#include "ops/attention/makespan.hpp"
#include "ops/attention/mma/flash_mma.hpp"
#include "ops/attention/plan_for_lent.hpp"

namespace syslab::attention {

namespace {

// The second kernel, and the time to write partial results and read them again.
constexpr double kCombineUs = 2.5, kPartialBytesPerUs = 1.5e6;
constexpr std::int64_t kMostSplits = 64;
// With this many blocks for each multiprocessor the grid is large enough without splits; with as many as the second
// number their order hardly matters.
constexpr std::int64_t kBlocksEnough = 4;
constexpr double kSimulatedForwardBlocks = 8;

std::int64_t keys_of_block(const Problem& problem, std::int64_t rows, std::int64_t block) {
  return problem.visible_keys(std::min((block + 1) * rows, problem.seq_q) - 1);
}

// The grid of one choice, regardless of the order of blocks.
struct Grid {
  ForwardPlan plan;
  const ForwardTileShape* shape = nullptr;
  double blocks = 0, units = 0, longest = 0;  // of one head
  double partial_rows = 0;                    // of one head: rows that have several splits, once for each

  int units_of(std::int64_t keys) const { return static_cast<int>(ceil_div(keys, shape->step())); }
};

Grid grid_of(const Problem& problem, int tile, std::int64_t keys_of_split) {
  Grid grid;
  const ForwardTileShape& shape = kForwardTiles[static_cast<std::size_t>(tile)];
  grid.shape = &shape;
  grid.plan.tile = tile;
  grid.plan.row_blocks = ceil_div(problem.seq_q, shape.rows());
  const std::int64_t most = std::max<std::int64_t>(problem.visible_keys(problem.seq_q - 1), 1);
  grid.plan.keys_of_split = std::min(keys_of_split, ceil_div(most, shape.step()) * shape.step());
  grid.plan.splits = ceil_div(most, grid.plan.keys_of_split);
  const int whole = grid.units_of(grid.plan.keys_of_split);
  for (std::int64_t block = 0; block < grid.plan.row_blocks; ++block) {
    const std::int64_t sees = keys_of_block(problem, shape.rows(), block);
    const std::int64_t full = sees / grid.plan.keys_of_split;
    const int rest = grid.units_of(sees % grid.plan.keys_of_split);
    const double splits = static_cast<double>(full) + (rest > 0 ? 1 : 0);
    grid.blocks += std::max(splits, 1.0);
    grid.units += static_cast<double>(full) * whole + rest;
    grid.longest = std::max(grid.longest, full > 0 ? static_cast<double>(whole) : rest);
    if (splits > 1) grid.partial_rows += splits * shape.rows();
  }
  return grid;
}

double time_around(const Problem& problem, const Grid& grid) {
  if (grid.plan.splits <= 1) return grid.shape->start_us;
  const auto width = static_cast<double>(problem.batch * problem.heads_q * problem.head_dim);
  return grid.shape->start_us + kCombineUs + grid.partial_rows * width * sizeof(float) / kPartialBytesPerUs;
}

// A lower bound on the time, whatever the order of the blocks.
double least_time(const Problem& problem, const Grid& grid, int multiprocessors) {
  const auto heads = static_cast<double>(problem.batch * problem.heads_q);
  const ForwardTileShape& shape = *grid.shape;
  const double work = heads / multiprocessors * (grid.units * shape.shared_us + grid.blocks * shape.block_us);
  return time_around(problem, grid) + std::max(grid.longest * shape.alone_us, work - shape.block_us);
}

double expected_time(const Problem& problem, const Grid& grid, int multiprocessors) {
  const std::int64_t heads = problem.batch * problem.heads_q;
  if (grid.blocks * static_cast<double>(heads) > kSimulatedForwardBlocks * multiprocessors) {
    return least_time(problem, grid, multiprocessors);
  }
  // In the order in which the kernel numbers its blocks: heads, within a head the splits, and within a split the rows
  // that see the most keys first.
  std::vector<int> units;
  for (std::int64_t split = 0; split < grid.plan.splits; ++split) {
    for (std::int64_t block = grid.plan.row_blocks - 1; block >= 0; --block) {
      const std::int64_t rest = keys_of_block(problem, grid.shape->rows(), block) - split * grid.plan.keys_of_split;
      if (split > 0 && rest <= 0) break;  // nor do the rows above see more
      units.push_back(grid.units_of(std::min(rest, grid.plan.keys_of_split)));
    }
  }
  const auto of_head = static_cast<std::ptrdiff_t>(units.size());
  units.reserve(units.size() * static_cast<std::size_t>(heads));
  for (std::int64_t head = 1; head < heads; ++head) units.insert(units.end(), units.begin(), units.begin() + of_head);
  return time_around(problem, grid) + makespan(units, multiprocessors, grid.shape->costs());
}

}  // namespace

ForwardPlan plan_with(const Problem& problem, int tile, std::int64_t keys_of_split, int multiprocessors) {
  Grid grid = grid_of(problem, tile, keys_of_split);
  grid.plan.predicted_us = expected_time(problem, grid, multiprocessors);
  return grid.plan;
}

ForwardPlan plan_forward(const Problem& problem, int multiprocessors) {
  require_lengths("flash_mma forward", problem);
  int head_dim = 0;
  for (const ForwardTileShape& shape : kForwardTiles) {
    if (shape.head_dim >= problem.head_dim && (head_dim == 0 || shape.head_dim < head_dim)) head_dim = shape.head_dim;
  }
  ForwardPlan best;
  best.predicted_us = std::numeric_limits<double>::infinity();
  const auto consider = [&](int tile, std::int64_t keys_of_split) {
    Grid grid = grid_of(problem, tile, keys_of_split);
    if (least_time(problem, grid, multiprocessors) >= best.predicted_us) return;
    grid.plan.predicted_us = expected_time(problem, grid, multiprocessors);
    if (grid.plan.predicted_us < best.predicted_us) best = grid.plan;
  };
  for (std::size_t tile = 0; tile < kForwardTiles.size(); ++tile) {
    const ForwardTileShape& shape = kForwardTiles[tile];
    if (shape.head_dim != head_dim) continue;
    consider(static_cast<int>(tile), std::numeric_limits<std::int32_t>::max());
    const std::int64_t blocks = problem.batch * problem.heads_q * ceil_div(problem.seq_q, shape.rows());
    if (blocks >= kBlocksEnough * multiprocessors) continue;
    const std::int64_t most = problem.visible_keys(problem.seq_q - 1);
    for (std::int64_t steps = 1; steps * shape.step() < most; steps *= 2) {
      for (const std::int64_t keys : {steps * shape.step(), steps * shape.step() * 3 / 2}) {
        if (keys % shape.step() != 0 || keys >= most || ceil_div(most, keys) > kMostSplits) continue;
        consider(static_cast<int>(tile), keys);
      }
    }
  }
  return best;
}

std::size_t partial_bytes(const Problem& problem, const ForwardPlan& plan) {
  return flash::partial_bytes(plan.splits, problem.batch * problem.heads_q * problem.seq_q, problem.head_dim);
}

std::size_t forward_bytes_to_lend(const Problem& problem) {
  return partial_bytes(problem, forward_plan_for_lent(problem, kTypicalMultiprocessors, 0));
}

ForwardPlan forward_plan_for_lent(const Problem& problem, int multiprocessors, std::size_t lent_bytes) {
  struct Key {
    Problem problem;
    int multiprocessors = 0;
    bool operator==(const Key&) const = default;
  };
  thread_local KeptPlans<Key, ForwardPlan> kept;
  const auto planned = [&](int of) { return kept.get({problem, of}, [&] { return plan_forward(problem, of); }); };
  return plan_for_lent(planned(multiprocessors), planned(kTypicalMultiprocessors), lent_bytes,
                       [&](const ForwardPlan& plan) { return partial_bytes(problem, plan); });
}

}  // namespace syslab::attention
