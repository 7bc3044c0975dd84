#include "stats/detect.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "core/error.hpp"
#include "stats/distributions.hpp"

namespace syslab::stats {
namespace {

double standard_error(const PairedSpread& spread, int launches, int blocks_per_launch) {
  const double of_blocks = spread.between_blocks * spread.between_blocks / blocks_per_launch;
  return std::sqrt((spread.between_launches * spread.between_launches + of_blocks) / launches);
}

// What the distance from the margin must be, in standard errors.
double distance_needed(int launches, double power) {
  return student_t_quantile(0.975, launches - 1) + student_t_quantile(power, launches - 1);
}

}  // namespace

PairedSpread paired_spread(std::span<const PairedBlock> pilot) {
  struct Launch {
    double count = 0, sum = 0;
  };
  std::map<int, Launch> launches;
  double total = 0;
  for (const PairedBlock& block : pilot) {
    Launch& launch = launches[block.launch];
    launch.count += 1;
    launch.sum += block.log_ratio;
    total += block.log_ratio;
  }
  const auto n = static_cast<double>(pilot.size());
  const auto groups = static_cast<double>(launches.size());
  if (launches.size() < 2 || pilot.size() <= launches.size())
    throw Error(ErrorKind::usage, "the spread between launches and blocks was asked of " +
                                      std::to_string(pilot.size()) + " blocks in " + std::to_string(launches.size()) +
                                      " launches; it takes at least two launches, one of them with two blocks");
  double within = 0;
  for (const PairedBlock& block : pilot) {
    const Launch& launch = launches[block.launch];
    const double deviation = block.log_ratio - launch.sum / launch.count;
    within += deviation * deviation;
  }
  double between = 0;
  double squared_counts = 0;
  for (const auto& [number, launch] : launches) {
    const double deviation = launch.sum / launch.count - total / n;
    between += launch.count * deviation * deviation;
    squared_counts += launch.count * launch.count;
  }
  const double within_variance = within / (n - groups);
  const double blocks_a_launch = (n - squared_counts / n) / (groups - 1);
  const double between_variance = (between / (groups - 1) - within_variance) / blocks_a_launch;
  return {std::sqrt(within_variance), std::sqrt(std::max(between_variance, 0.0))};
}

PairedPlan plan_detection(double effect, double delta, const PairedSpread& spread, const PairedCost& cost, double power,
                          int most_launches) {
  if (!(delta >= 0 && effect > delta))
    throw Error(ErrorKind::usage, "an effect of " + std::to_string(effect) + " was to be told from a threshold of " +
                                      std::to_string(delta) + "; ask for an effect beyond the threshold");
  constexpr int kFewestLaunches = 3;
  constexpr int kMostBlocks = 64;
  most_launches = std::max(most_launches, kFewestLaunches);
  const double gap = std::log1p(effect) - std::log1p(delta);
  const auto seconds = [&](int launches, int blocks) {
    return launches * (cost.seconds_per_launch + blocks * cost.seconds_per_block);
  };
  PairedPlan best;
  for (int launches = kFewestLaunches; launches <= most_launches; ++launches) {
    const double allowed = gap / distance_needed(launches, power);
    for (int blocks = 1; blocks <= kMostBlocks; ++blocks) {
      if (standard_error(spread, launches, blocks) > allowed) continue;
      if (!best.reached || seconds(launches, blocks) < best.seconds)
        best = {launches, blocks, seconds(launches, blocks), 0, true};
      break;  // more blocks in as many launches only cost more
    }
  }
  if (!best.reached) best = {most_launches, kMostBlocks, seconds(most_launches, kMostBlocks), 0, false};
  best.half_width =
      student_t_quantile(0.975, best.launches - 1) * standard_error(spread, best.launches, best.blocks_per_launch);
  return best;
}

double smallest_detectable(double delta, const PairedSpread& spread, int launches, int blocks_per_launch,
                           double power) {
  if (launches < 2 || blocks_per_launch < 1)
    throw Error(ErrorKind::usage, "the smallest detectable change was asked of " + std::to_string(launches) +
                                      " launches of " + std::to_string(blocks_per_launch) +
                                      " blocks; it takes two launches and one block at least");
  return std::expm1(std::log1p(delta) +
                    distance_needed(launches, power) * standard_error(spread, launches, blocks_per_launch));
}

}  // namespace syslab::stats
