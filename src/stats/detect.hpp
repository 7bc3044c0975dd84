// How much measuring a decision will take (`compare --detect 2%`): from the spread seen so far and what a block and a
// launch cost, the launches and the blocks in each that will call a change of the asked size.
#pragma once

#include <cstdint>
#include <span>

#include "stats/paired.hpp"

namespace syslab::stats {

// Standard deviations of the log ratio: of one block about its launch's own centre, as far as the midmean feels it
// (midmean_variance), and of a launch's true centre about the overall one. Variance of the estimate from L launches of
// m blocks: (between_launches² + between_blocks² / m) / L.
struct PairedSpread {
  double between_blocks = 0, between_launches = 0;
};

// Components of variance from a pilot, by their moments: what launches differ by beyond what their own blocks explain
// (a part that comes out negative is 0). Launches may have unequal numbers of blocks. Error(usage) unless there are at
// least two launches, one of them with two blocks.
PairedSpread paired_spread(std::span<const PairedBlock> pilot);

// between_blocks alone, which one launch tells, too. Error(usage) unless a launch has two blocks.
double block_spread(std::span<const PairedBlock> pilot);

// How far the true standard deviation may be from one that was estimated with `dof` degrees of freedom: it is at least
// `least` times the estimate with 80 % probability, and at most `most` times it with 80 %.
struct SpreadRange {
  double least = 1, most = 1;
};
SpreadRange spread_range(double dof);

// What of `spread` is sure once it was estimated from `launches` (≥ 2) of `blocks_per_launch` each: launches vary at
// least so much with 80 % probability. Blocks are many, and theirs stays as it is.
PairedSpread least_spread(const PairedSpread& spread, int launches, int blocks_per_launch);

struct PairedCost {
  double seconds_per_block = 0, seconds_per_launch = 0;  // a launch: starting and warming both sides
};

struct PairedPlan {
  int launches = 0, blocks_per_launch = 0;
  double seconds = 0;
  double half_width = 0;  // expected, of the 95 % interval of the log ratio
  bool reached = false;   // false: not even `most_launches` will do, and the plan is that many
};

// The cheapest plan with a 95 % interval beyond log(1 + delta) with probability `power` when the true log ratio is
// log(1 + effect); delta = 0 asks for a difference at all. `effect` > `delta` ≥ 0 or Error(usage). Between 3 and
// `most_launches` launches, 1 to 64 blocks a launch. Without the noncentral t: the standard error must be at most
// (log(1 + effect) − log(1 + delta)) / (t(97.5 %) + t(power)) with launches − 1 degrees of freedom.
PairedPlan plan_detection(double effect, double delta, const PairedSpread& spread, const PairedCost& cost,
                          double power = 0.95, int most_launches = 200);

// The smallest effect that `launches` of `blocks_per_launch` will call with that power: the inverse of plan_detection.
double smallest_detectable(double delta, const PairedSpread& spread, int launches, int blocks_per_launch,
                           double power = 0.95);

// Expected half-width of the 95 % interval of the log ratio from so many launches (≥ 2) of so many blocks.
double expected_half_width(const PairedSpread& spread, int launches, int blocks_per_launch);

// How often identical sides are called different, from a pilot of identical sides: `redraws` comparisons of `launches`
// launches, each launch drawn from the pilot's, with replacement, and its sides swapped by chance, which changes
// nothing where the sides are the same. The share with a 95 % interval entirely beyond ±log(1 + delta); delta = 0 asks
// for any difference, which noise of any symmetrical kind should make of about 5 %. Error(usage) on fewer than two
// launches.
double false_alarm_rate(std::span<const PairedBlock> identical, double delta, int launches, std::uint64_t seed,
                        int redraws = 10'000);

}  // namespace syslab::stats
