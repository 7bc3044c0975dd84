#include "stats/detect.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "stats/distributions.hpp"
#include "stats/midmean.hpp"

namespace syslab::stats {
namespace {

double standard_error(const PairedSpread& spread, int launches, int blocks_per_launch) {
  const double of_blocks = spread.between_blocks * spread.between_blocks / blocks_per_launch;
  return std::sqrt((spread.between_launches * spread.between_launches + of_blocks) / launches);
}

// The required distance from the margin, in standard errors.
double distance_needed(int launches, double power) {
  return student_t_quantile(0.975, launches - 1) + student_t_quantile(power, launches - 1);
}

// Chi squared after Wilson and Hilferty (1931): 3.20 for 3.22 at p = 0.8 and two degrees of freedom, closer beyond.
double chi_squared_quantile(double p, double dof) {
  const double part = 2 / (9 * dof);
  const double root = 1 - part + normal_quantile(p) * std::sqrt(part);
  return dof * root * root * root;
}

}  // namespace

double block_spread(std::span<const PairedBlock> pilot) {
  const std::vector<std::vector<double>> launches = blocks_by_launch(pilot);
  if (pilot.size() <= launches.size())
    throw Error(ErrorKind::usage,
                "the spread of blocks was asked of launches of one block each; it takes one of two blocks");
  double within = 0;
  for (const std::vector<double>& launch : launches) {
    if (launch.size() > 1) within += (static_cast<double>(launch.size()) - 1) * midmean_variance(launch);
  }
  return std::sqrt(within / static_cast<double>(pilot.size() - launches.size()));
}

PairedSpread paired_spread(std::span<const PairedBlock> pilot) {
  const std::vector<std::vector<double>> launches = blocks_by_launch(pilot);
  const auto groups = static_cast<double>(launches.size());
  if (launches.size() < 2 || pilot.size() <= launches.size())
    throw Error(ErrorKind::usage, "the spread between launches and blocks was asked of " +
                                      std::to_string(pilot.size()) + " blocks in " + std::to_string(launches.size()) +
                                      " launches; it takes at least two launches, one of them with two blocks");
  double centre = 0, inverse_counts = 0;
  for (const std::vector<double>& launch : launches) {
    const auto count = static_cast<double>(launch.size());
    centre += midmean(launch) / groups;
    inverse_counts += 1 / count;
  }
  const double between_blocks = block_spread(pilot), of_blocks = between_blocks * between_blocks;
  double of_launches = 0;
  for (const std::vector<double>& launch : launches) {
    const double deviation = midmean(launch) - centre;
    of_launches += deviation * deviation / (groups - 1);
  }
  return {between_blocks, std::sqrt(std::max(of_launches - of_blocks * inverse_counts / groups, 0.0))};
}

SpreadRange spread_range(double dof) {
  return {std::sqrt(dof / chi_squared_quantile(0.8, dof)), std::sqrt(dof / chi_squared_quantile(0.2, dof))};
}

PairedSpread least_spread(const PairedSpread& spread, int launches, int blocks_per_launch) {
  const double of_blocks = spread.between_blocks * spread.between_blocks / blocks_per_launch;
  const double of_launches = spread.between_launches * spread.between_launches + of_blocks;
  const double least = spread_range(launches - 1).least;
  return {spread.between_blocks, std::sqrt(std::max(of_launches * least * least - of_blocks, 0.0))};
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
  best.half_width = expected_half_width(spread, best.launches, best.blocks_per_launch);
  return best;
}

double expected_half_width(const PairedSpread& spread, int launches, int blocks_per_launch) {
  return student_t_quantile(0.975, launches - 1) * standard_error(spread, launches, blocks_per_launch);
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

double false_alarm_rate(std::span<const PairedBlock> identical, double delta, int launches, std::uint64_t seed,
                        int redraws) {
  const std::vector<double> pool = launch_means(identical);
  if (pool.size() < 2 || launches < 2)
    throw Error(ErrorKind::usage, "the rate of false alarms was asked of " + std::to_string(pool.size()) +
                                      " launches, for comparisons of " + std::to_string(launches) +
                                      "; both take two at least");
  const double margin = std::log1p(delta), count = launches;
  const double widths = student_t_quantile(0.975, count - 1);
  std::mt19937_64 generator(seed);
  int alarms = 0;
  for (int redraw = 0; redraw < redraws; ++redraw) {
    double sum = 0, squares = 0;
    for (int i = 0; i < launches; ++i) {
      const std::uint64_t random = generator();
      const double mean = pool[(random >> 1) % pool.size()];  // the bias of % is beyond 2⁻⁵⁰
      sum += (random & 1) != 0 ? mean : -mean;
      squares += mean * mean;
    }
    const double variance = std::max(squares - sum * sum / count, 0.0) / (count - 1);
    if (std::abs(sum / count) - widths * std::sqrt(variance / count) > margin) ++alarms;
  }
  return static_cast<double>(alarms) / redraws;
}

}  // namespace syslab::stats
