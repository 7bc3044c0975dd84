#include "stats/midmean.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace syslab::stats {
namespace {

TEST(Midmean, IsTheMeanOfTheMiddleHalf) {
  EXPECT_DOUBLE_EQ(midmean(std::vector<double>{9, 1, 3, 2}), 2.5);
  EXPECT_DOUBLE_EQ(midmean(std::vector<double>{1, 100, 4, -50, 2, 3, 1000}), 22.0 / 1);  // one aside at either end
  EXPECT_DOUBLE_EQ(midmean(std::vector<double>{1, 2, 6}), 3);                            // too few to put any aside
  EXPECT_TRUE(std::isnan(midmean({})));
}

// 1 … 8: winsorised 3 3 3 4 5 6 6 6, sum of squares about 4.5 is 14, 8 · 14 / (4 · 3).
TEST(MidmeanVariance, AgreesWithTukeyAndMcLaughlinByHand) {
  EXPECT_DOUBLE_EQ(midmean_variance(std::vector<double>{8, 1, 7, 2, 6, 3, 5, 4}), 8 * 14 / 12.0);
  EXPECT_DOUBLE_EQ(midmean_variance(std::vector<double>{1, 3}), 2);
  EXPECT_TRUE(std::isnan(midmean_variance(std::vector<double>{1})));
}

// What it is for: the spread of the midmean of 16 values, some of them far off, as the formula has it.
TEST(MidmeanVariance, TellsHowMuchMidmeansVary) {
  std::mt19937_64 generator(3);
  std::normal_distribution<double> normal;
  std::bernoulli_distribution far(0.1);
  constexpr int kSeries = 20'000;
  constexpr std::size_t kValues = 16;
  double told = 0, sum = 0, squares = 0;
  for (int series = 0; series < kSeries; ++series) {
    std::vector<double> values(kValues);
    for (double& value : values) value = normal(generator) * (far(generator) ? 20 : 1);
    told += midmean_variance(values) / kValues / kSeries;
    const double found = midmean(values);
    sum += found;
    squares += found * found;
  }
  const double variance = squares / kSeries - (sum / kSeries) * (sum / kSeries);
  EXPECT_NEAR(told / variance, 1, 0.15);
  EXPECT_NEAR(sum / kSeries, 0, 4 * std::sqrt(variance / kSeries));
}

}  // namespace
}  // namespace syslab::stats
