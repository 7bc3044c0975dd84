#include "stats/detect.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/error.hpp"
#include "stats/verdict.hpp"

namespace syslab::stats {
namespace {

// Launches (1, 3), (4, 6), (7, 9): 6 within over 3 degrees of freedom; their means 2, 5, 8 vary by 9, of which a
// variance of 2 over 2 blocks a launch explains 1.
TEST(PairedSpread, AgreesWithAnAnalysisOfVarianceByHand) {
  const PairedSpread spread = paired_spread(std::vector<PairedBlock>{{0, 1}, {0, 3}, {1, 4}, {1, 6}, {2, 7}, {2, 9}});
  EXPECT_DOUBLE_EQ(spread.between_blocks, std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(spread.between_launches, std::sqrt(8.0));
}

TEST(PairedSpread, IsNoneBetweenLaunchesThatAgreeTooWell) {
  const PairedSpread spread = paired_spread(std::vector<PairedBlock>{{0, 1}, {0, 3}, {1, 3}, {1, 1}});
  EXPECT_EQ(spread.between_launches, 0.0);
  EXPECT_THROW(paired_spread(std::vector<PairedBlock>{{0, 1}, {0, 3}}), Error);
  EXPECT_THROW(paired_spread(std::vector<PairedBlock>{{0, 1}, {1, 3}}), Error);
}

// Of three launches the variance is known to be at least 2 / 3.2 of what they show, where their blocks agree.
TEST(PairedSpread, AtLeastIsWhatFewLaunchesAreSureOf) {
  EXPECT_NEAR(least_spread({0, 0.05}, 3, 16).between_launches, 0.05 * std::sqrt(2 / 3.198), 1e-5);
  EXPECT_GT(least_spread({0, 0.05}, 12, 16).between_launches, 0.85 * 0.05);
  EXPECT_EQ(least_spread({0.05, 0}, 3, 16).between_launches, 0.0);
  EXPECT_EQ(least_spread({0.05, 0}, 3, 16).between_blocks, 0.05);
}

// Chi squared at 80 % and 20 %: 3.219 and 0.446 of two degrees of freedom, 14.631 and 6.989 of eleven. Wilson and
// Hilferty's is within 1 % of those of two, and within 0.2 % of those of eleven.
TEST(PairedSpread, IsKnownToARangeThatNarrowsWithLaunches) {
  EXPECT_NEAR(2 / std::pow(spread_range(2).least, 2), 3.219, 0.01 * 3.219);
  EXPECT_NEAR(2 / std::pow(spread_range(2).most, 2), 0.446, 0.01 * 0.446);
  EXPECT_NEAR(11 / std::pow(spread_range(11).least, 2), 14.631, 0.002 * 14.631);
  EXPECT_NEAR(11 / std::pow(spread_range(11).most, 2), 6.989, 0.002 * 6.989);
}

TEST(PairedSpread, OfBlocksIsKnownFromOneLaunch) {
  EXPECT_DOUBLE_EQ(block_spread(std::vector<PairedBlock>{{0, 1}, {0, 3}}), std::sqrt(2.0));
  EXPECT_THROW(block_spread(std::vector<PairedBlock>{{0, 1}, {1, 3}}), Error);
}

TEST(Detection, TakesBlocksWhereBlocksVaryAndLaunchesWhereLaunchesDo) {
  const PairedCost cost{0.1, 1.0};
  const PairedPlan noisy_blocks = plan_detection(0.02, 0.01, {0.01, 0.0001}, cost);
  const PairedPlan noisy_launches = plan_detection(0.02, 0.01, {0.0001, 0.01}, cost);
  EXPECT_TRUE(noisy_blocks.reached && noisy_launches.reached);
  EXPECT_GT(noisy_blocks.blocks_per_launch, 4);
  EXPECT_EQ(noisy_launches.blocks_per_launch, 1);
  EXPECT_GT(noisy_launches.launches, noisy_blocks.launches);
  EXPECT_DOUBLE_EQ(noisy_launches.seconds, noisy_launches.launches * 1.1);
}

TEST(Detection, SaysSoWhenNoPlanWillDo) {
  const PairedPlan plan = plan_detection(0.011, 0.01, {0.1, 0.1}, {0.1, 1});
  EXPECT_FALSE(plan.reached);
  EXPECT_EQ(plan.launches, 200);
  EXPECT_THROW(plan_detection(0.01, 0.01, {}, {}), Error);
  EXPECT_THROW(plan_detection(-0.02, 0.0, {}, {}), Error);
}

TEST(Detection, IsTheInverseOfTheSmallestDetectableChange) {
  const PairedSpread spread{0.01, 0.005};
  const PairedPlan plan = plan_detection(0.03, 0.01, spread, {0.1, 1});
  EXPECT_LE(smallest_detectable(0.01, spread, plan.launches, plan.blocks_per_launch), 0.03);
  EXPECT_GT(smallest_detectable(0.01, spread, plan.launches - 1, plan.blocks_per_launch), 0.03);
}

// What the plan promises is tried: the planned comparison calls the effect about 95 times in a hundred.
TEST(Detection, HasThePowerThatItPromises) {
  for (const PairedSpread truth : {PairedSpread{0.01, 0.0}, PairedSpread{0.005, 0.007}, PairedSpread{0.02, 0.02}}) {
    std::mt19937_64 generator(23);
    std::normal_distribution<double> normal;
    const auto compare = [&](int launches, int blocks_per_launch) {
      std::vector<PairedBlock> blocks;
      for (int launch = 0; launch < launches; ++launch) {
        const double offset = std::log(1.02) + truth.between_launches * normal(generator);
        for (int block = 0; block < blocks_per_launch; ++block)
          blocks.push_back({launch, offset + truth.between_blocks * normal(generator)});
      }
      return blocks;
    };
    const PairedSpread spread = paired_spread(compare(2000, 16));  // a pilot long enough to be beyond doubt
    EXPECT_NEAR(spread.between_launches, truth.between_launches, 0.0007);
    EXPECT_NEAR(spread.between_blocks / truth.between_blocks, std::sqrt(1.2), 0.05) << "what midmeans cost";
    const PairedPlan plan = plan_detection(0.02, 0.01, spread, {0.1, 1});
    ASSERT_TRUE(plan.reached);
    int called = 0;
    constexpr int kTrials = 2000;
    for (int trial = 0; trial < kTrials; ++trial) {
      const std::vector<PairedBlock> blocks = compare(plan.launches, plan.blocks_per_launch);
      if (verdict(paired_interval(blocks).interval_95, 0.01) == Verdict::slower) ++called;
    }
    EXPECT_GE(called, kTrials * 94 / 100) << plan.launches << " launches of " << plan.blocks_per_launch;
  }
}

std::vector<PairedBlock> normal_launches(int launches, double spread) {
  std::mt19937_64 generator(5);
  std::normal_distribution<double> normal(0, spread);
  std::vector<PairedBlock> blocks;
  for (int i = 0; i < launches; ++i) blocks.push_back({i, normal(generator)});
  return blocks;
}

TEST(FalseAlarms, OfAnyDifferenceAreWhatTheIntervalPromises) {
  const double any = false_alarm_rate(normal_launches(60, 0.003), 0, 12, 1);
  EXPECT_GT(any, 0.035);
  EXPECT_LT(any, 0.065);
}

TEST(FalseAlarms, BeyondAThresholdDependOnTheSpread) {
  EXPECT_EQ(false_alarm_rate(normal_launches(60, 0.003), 0.01, 12, 1), 0);
  const double noisy = false_alarm_rate(normal_launches(60, 0.3), 0.01, 12, 1);
  EXPECT_GT(noisy, 0.02);  // δ is nothing beside this noise: nearly as many as without it
  EXPECT_LT(noisy, false_alarm_rate(normal_launches(60, 0.3), 0, 12, 1));
}

// A pilot that lies to one side by chance is no sign of a difference: identical sides may be swapped.
TEST(FalseAlarms, DoNotComeFromAPilotThatHappensToLean) {
  std::vector<PairedBlock> leaning = normal_launches(24, 0.001);
  for (PairedBlock& block : leaning) block.log_ratio = std::abs(block.log_ratio) + 0.02;
  EXPECT_LT(false_alarm_rate(leaning, 0.01, 12, 1), 0.06);
  EXPECT_THROW(false_alarm_rate(normal_launches(1, 0.1), 0.01, 12, 1), Error);
  EXPECT_THROW(false_alarm_rate(normal_launches(9, 0.1), 0.01, 1, 1), Error);
}

}  // namespace
}  // namespace syslab::stats
