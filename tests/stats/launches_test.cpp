#include "stats/launches.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace syslab::stats {
namespace {

TEST(Launches, AreSummarisedByTheMedianOfTheirMedians) {
  const std::vector<std::vector<double>> launches{{1, 2, 30}, {}, {4, 5, 6, 5}, {3, 3, 3}};
  const LaunchesSummary summary = summarize_launches(launches);
  EXPECT_EQ(summary.launches, 3);
  EXPECT_EQ(summary.samples, 10);
  EXPECT_EQ(summary.medians, (std::vector<double>{2, 5, 3}));
  EXPECT_EQ(summary.median, 3);
  EXPECT_TRUE(summary.between_launches);
  // logs 0.6931 1.6094 1.0986: s = 0.4594, t(97.5 %, 2) = 4.3027, √(π/2 · 3/3.5) = 1.1603
  const double half_width = 4.30265 * 1.16034 * 0.459386 / std::sqrt(3.0);
  EXPECT_NEAR(summary.median_95.low, 3 * std::exp(-half_width), 1e-3);
  EXPECT_NEAR(summary.median_95.high, 3 * std::exp(half_width), 0.05);
}

TEST(Launches, OfAnEvenNumberOfSamplesHaveTheirMedianBetweenTheMiddleTwo) {
  const std::vector<std::vector<double>> launches{{9, 1, 4, 2}, {7, 5}};
  EXPECT_EQ(summarize_launches(launches).medians, (std::vector<double>{3, 6}));
  EXPECT_EQ(summarize_launches(launches).median, 4.5);
}

TEST(Launches, ThatAreNotAllPositiveAreTakenAsTheyAre) {
  const std::vector<std::vector<double>> launches{{-1}, {0}, {1}};
  const LaunchesSummary summary = summarize_launches(launches);
  EXPECT_EQ(summary.median, 0);
  EXPECT_NEAR(summary.median_95.high, 4.30265 * 1.16034 / std::sqrt(3.0), 1e-3);
  EXPECT_DOUBLE_EQ(summary.median_95.low, -summary.median_95.high);
}

TEST(Launches, OneAloneHasTheIntervalOfItsOwnSamples) {
  const std::vector<std::vector<double>> launches{{5, 1, 4, 2, 3}};
  const LaunchesSummary summary = summarize_launches(launches);
  EXPECT_FALSE(summary.between_launches);
  EXPECT_EQ(summary.median, 3);
  EXPECT_EQ(summary.median_95.low, 1);
  EXPECT_EQ(summary.median_95.high, 5);
  EXPECT_TRUE(std::isnan(summarize_launches({}).median));
}

TEST(Launches, CoverTheTrueMedianWhateverSharesTheNoise) {
  struct Row {
    std::size_t launches;
    double between, within;
  };
  for (const Row row : {Row{2, 0.005, 0.005}, Row{3, 0.005, 0.001}, Row{3, 0, 0.01}, Row{5, 0.005, 0.005},
                        Row{10, 0.005, 0.01}, Row{4, 0, 0.01}}) {
    std::mt19937_64 generator(19);
    std::normal_distribution<double> normal;
    int covered = 0;
    constexpr int kTrials = 4000;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<std::vector<double>> launches(row.launches, std::vector<double>(25));
      for (std::vector<double>& launch : launches) {
        const double offset = row.between * normal(generator);
        for (double& value : launch) value = std::exp(offset + row.within * normal(generator));
      }
      const Interval interval = summarize_launches(launches).median_95;
      if (interval.low <= 1 && 1 <= interval.high) ++covered;
    }
    EXPECT_GE(covered, kTrials * 94 / 100) << row.launches << " launches";
    EXPECT_LE(covered, kTrials * 97 / 100) << row.launches << " launches";
  }
}

}  // namespace
}  // namespace syslab::stats
