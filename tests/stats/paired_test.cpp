#include "stats/paired.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.hpp"
#include "stats/unpaired.hpp"

namespace syslab::stats {
namespace {

// A block a launch.
std::vector<PairedBlock> blocks_of(std::span<const double> log_ratios) {
  std::vector<PairedBlock> blocks;
  for (const double value : log_ratios) blocks.push_back({static_cast<int>(blocks.size()), value});
  return blocks;
}

// Darwin's maize, heights of crossed less self-fertilised plants in eighths of an inch: Fisher, "The Design of
// Experiments" (1935), sections 17 and 21. Student's t is 2.148 on 14 degrees of freedom, and of 32,768 ways to place
// the signs 863 reach the observed sum of 314.
const std::vector<double> kMaize{49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48};

TEST(PairedEstimate, AgreesWithFisherOnDarwinsMaize) {
  const PairedEstimate estimate = paired_estimate(blocks_of(kMaize));
  EXPECT_EQ(estimate.launches, 15);
  EXPECT_EQ(estimate.dof, 14);
  EXPECT_NEAR(estimate.log_ratio, 314.0 / 15, 1e-12);
  EXPECT_NEAR(estimate.log_ratio / estimate.standard_error, 2.148, 0.0005);
  EXPECT_NEAR(estimate.p_t, 0.0497, 0.00005);
  EXPECT_DOUBLE_EQ(estimate.p_value, 2 * 863 / 32768.0);
}

// Student's sleep data (Biometrika 1908), soporific 2 less soporific 1. t = 4.0621 on 9 degrees of freedom, p =
// 0.002833, interval 0.7001142 to 2.4598858 (R, ?t.test).
TEST(PairedEstimate, AgreesWithStudentOnSleep) {
  const PairedEstimate estimate =
      paired_estimate(blocks_of(std::vector<double>{1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4}));
  EXPECT_NEAR(estimate.log_ratio / estimate.standard_error, 4.0621, 0.00005);
  EXPECT_NEAR(estimate.p_t, 0.002833, 0.0000005);
  EXPECT_NEAR(estimate.interval_95.low, 0.7001142, 0.00000005);
  EXPECT_NEAR(estimate.interval_95.high, 2.4598858, 0.00000005);
}

// The same data unpaired: t = −1.8608 on 17.776 degrees of freedom, p = 0.07939, interval −0.2054832 to 3.3654832.
TEST(UnpairedEstimate, AgreesWithWelchOnSleep) {
  std::vector<double> first{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
  std::vector<double> second{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};
  for (double& value : first) value = std::exp(value);
  for (double& value : second) value = std::exp(value);
  const UnpairedEstimate estimate = unpaired_estimate(first, second);
  EXPECT_NEAR(estimate.log_ratio / estimate.standard_error, 1.8608, 0.00005);
  EXPECT_NEAR(estimate.dof, 17.776, 0.0005);
  EXPECT_NEAR(estimate.p_t, 0.07939, 0.000005);
  EXPECT_NEAR(estimate.interval_95.low, -0.2054832, 0.00000005);
  EXPECT_NEAR(estimate.interval_95.high, 3.3654832, 0.00000005);
}

TEST(UnpairedEstimate, HasNoIntervalBelowThreeLaunchesASide) {
  const UnpairedEstimate estimate =
      unpaired_estimate(std::vector<double>{1.0, 1.1}, std::vector<double>{2.0, 2.1, 2.2, 2.3});
  EXPECT_GT(estimate.log_ratio, 0.6);
  EXPECT_TRUE(std::isnan(estimate.interval_95.low));
  EXPECT_TRUE(std::isnan(p_beyond(estimate, 0.01)));
  EXPECT_THROW(unpaired_estimate(std::vector<double>{}, std::vector<double>{1.0}), Error);
  EXPECT_THROW(unpaired_estimate(std::vector<double>{0.0}, std::vector<double>{1.0}), Error);
}

TEST(PairedEstimate, CountsLaunchesNotBlocks) {
  std::vector<PairedBlock> blocks;
  for (int launch = 0; launch < 3; ++launch) {
    for (int block = 0; block < 100; ++block) blocks.push_back({launch, launch + (block % 2 == 0 ? 0.25 : -0.25)});
  }
  const PairedEstimate estimate = paired_estimate(blocks);
  EXPECT_EQ(estimate.blocks, 300);
  EXPECT_EQ(estimate.dof, 2);
  EXPECT_NEAR(estimate.standard_error, 1 / std::sqrt(3.0), 1e-12);  // of 0, 1, 2
  EXPECT_DOUBLE_EQ(estimate.p_value, 0.5);                          // of the eight patterns ±0 ±1 ±2, four reach 3
}

TEST(PairedEstimate, HardlyFeelsABlockThatANeighbourCutInto) {
  std::vector<PairedBlock> blocks;
  for (int launch = 0; launch < 3; ++launch) {
    for (int block = 0; block < 16; ++block) blocks.push_back({launch, 0.001 * (block % 4) + (block == 5 ? 0.8 : 0)});
  }
  EXPECT_NEAR(paired_interval(blocks).log_ratio, 0.0015, 0.0005);
}

TEST(PairedEstimate, OfOneLaunchKnowsNothingOfTheNext) {
  const PairedEstimate estimate = paired_estimate(std::vector<PairedBlock>{{4, 0.1}, {4, 0.2}});
  EXPECT_DOUBLE_EQ(estimate.log_ratio, 0.15000000000000002);
  EXPECT_TRUE(std::isnan(estimate.interval_95.low));
  EXPECT_TRUE(std::isnan(p_beyond(estimate, 0.01)));
  EXPECT_EQ(paired_enough(std::vector<PairedBlock>{{4, 0.1}}, {}), PairedStop::go_on);
}

TEST(PairedEstimate, ComparesItsLogRatioWithTheLogarithmOfAThreshold) {
  const PairedEstimate estimate = paired_estimate(std::vector<PairedBlock>{{0, 0.049}, {1, 0.049}, {2, 0.049}});
  EXPECT_EQ(p_beyond(estimate, 0.05), 0);  // log 1.05 = 0.04879
  EXPECT_EQ(p_beyond(estimate, 0.051), 1);
}

TEST(UnpairedEstimate, WithoutAnySpreadHasTheDegreesOfFreedomOfItsSmallerSide) {
  EXPECT_EQ(unpaired_estimate(std::vector<double>{1, 1, 1}, std::vector<double>{2, 2, 2, 2}).dof, 2);
}

TEST(PairedEstimate, RefusesWhatItCannotMean) {
  EXPECT_THROW(paired_estimate({}), Error);
  EXPECT_THROW(paired_estimate(std::vector<PairedBlock>{{0, std::nan("")}}), Error);
  EXPECT_THROW(paired_estimate(std::vector<PairedBlock>{{0, 1.0}}, 1.0), Error);
}

TEST(SignFlip, DrawsManyPatternsWhereThereAreTooManyToTry) {
  std::vector<double> twice = kMaize;
  twice.insert(twice.end(), kMaize.begin(), kMaize.end());
  const double p = sign_flip_p(twice, 1);
  EXPECT_EQ(p, sign_flip_p(twice, 1));
  // 628 of a deviation of √(2 Σ d²) = 237.6: about 0.8 % by the normal approximation.
  EXPECT_GT(p, 0.004);
  EXPECT_LT(p, 0.013);
  EXPECT_EQ(sign_flip_p(std::vector<double>(20, 0.0), 1), 1.0);
  // What was observed counts as one draw, so that no p is zero.
  EXPECT_EQ(sign_flip_p(std::vector<double>(60, 1.0), 1), 1.0 / 65'536);
}

// `count` launches of one block, ±`deviation` in turn: a standard deviation of deviation · √(count / (count − 1)).
std::vector<PairedBlock> alternating(int count, double deviation, double mean = 0) {
  std::vector<PairedBlock> blocks;
  for (int launch = 0; launch < count; ++launch)
    blocks.push_back({100 - launch, mean + (launch % 2 == 0 ? deviation : -deviation)});
  return blocks;
}

TEST(PairedStopRule, FixesTheNumberOfLaunchesFromTheFirstOnes) {
  EXPECT_EQ(launches_wanted({}, {}), 12);
  EXPECT_EQ(launches_wanted(alternating(11, 0.1), {}), 12);
  EXPECT_EQ(launches_wanted(alternating(12, 0.001), {}), 12);
  // s² = 0.004² · 12/11, t(97.5 %, 11) = 2.2010: (2.2010 / 0.0025)² s² = 13.53
  EXPECT_EQ(launches_wanted(alternating(12, 0.004), {}), 14);
  EXPECT_EQ(launches_wanted(alternating(12, 0.1), {}), 20);
  // 5 % of a log ratio of 0.1 is ±0.5 %, and a quarter of the launches would do
  EXPECT_EQ(launches_wanted(alternating(12, 0.004, 0.1), {}), 12);
  std::vector<PairedBlock> then_quiet = alternating(12, 0.004);
  for (int launch = 0; launch < 4; ++launch) then_quiet.push_back({launch, 0});
  EXPECT_EQ(launches_wanted(then_quiet, {}), 14) << "what follows the first stage has no say";
}

TEST(PairedStopRule, StopsAtThatNumberAndSaysWhy) {
  EXPECT_EQ(paired_enough({}, {}), PairedStop::go_on);
  EXPECT_EQ(paired_enough(alternating(11, 0.001), {}), PairedStop::go_on);
  EXPECT_EQ(paired_enough(alternating(12, 0.001), {}), PairedStop::precision);
  EXPECT_EQ(paired_enough(alternating(12, 0.1), {}), PairedStop::go_on);
  EXPECT_EQ(paired_enough(alternating(19, 0.1), {}), PairedStop::go_on);
  EXPECT_EQ(paired_enough(alternating(20, 0.1), {}), PairedStop::max_launches);
}

TEST(PairedStopRule, TakesALimitBelowItsFirstStage) {
  PairedStopRule three;
  three.max_launches = 3;
  EXPECT_EQ(paired_enough(alternating(2, 0.001), three), PairedStop::go_on);
  EXPECT_EQ(paired_enough(alternating(3, 0.001), three), PairedStop::max_launches);
}

}  // namespace
}  // namespace syslab::stats
