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

TEST(PairedEstimate, OfOneLaunchKnowsNothingOfTheNext) {
  const PairedEstimate estimate = paired_estimate(std::vector<PairedBlock>{{4, 0.1}, {4, 0.2}});
  EXPECT_DOUBLE_EQ(estimate.log_ratio, 0.15000000000000002);
  EXPECT_TRUE(std::isnan(estimate.interval_95.low));
  EXPECT_TRUE(std::isnan(p_beyond(estimate, 0.01)));
  EXPECT_EQ(paired_enough(std::vector<PairedBlock>{{4, 0.1}}, {}), PairedStop::go_on);
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
}

TEST(PairedStopRule, LooksAtGeometricCounts) {
  const PairedStopRule rule;
  EXPECT_EQ(next_look(rule, 0), 6);
  EXPECT_EQ(next_look(rule, 5), 6);
  EXPECT_EQ(next_look(rule, 6), 9);
  EXPECT_EQ(next_look(rule, 9), 13);
  EXPECT_EQ(next_look(rule, 13), 19);
  EXPECT_EQ(next_look(rule, 19), 20);
  EXPECT_EQ(next_look(rule, 20), 20);
}

TEST(PairedStopRule, StopsAtALookThatIsPreciseEnough) {
  std::vector<PairedBlock> quiet;
  for (int launch = 0; launch < 6; ++launch) {
    EXPECT_EQ(paired_enough(quiet, {}), PairedStop::go_on);
    quiet.push_back({launch, launch % 2 == 0 ? 0.001 : -0.001});
  }
  EXPECT_EQ(paired_enough(quiet, {}), PairedStop::precision);  // ±0.115 %
  std::vector<PairedBlock> loud;
  for (int launch = 0; launch < 20; ++launch) {
    EXPECT_EQ(paired_enough(loud, {}), PairedStop::go_on) << launch;
    loud.push_back({launch, launch % 2 == 0 ? 0.1 : -0.1});
  }
  EXPECT_EQ(paired_enough(loud, {}), PairedStop::max_launches);
}

}  // namespace
}  // namespace syslab::stats
