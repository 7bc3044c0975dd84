#include "stats/summary.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "stats/distributions.hpp"

namespace syslab::stats {
namespace {

std::vector<double> one_to(int n) {
  std::vector<double> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

// 1 … n in an order without autocorrelation to speak of, so that only the ranks decide the interval.
std::vector<double> shuffled_one_to(int n) {
  std::vector<double> values = one_to(n);
  std::mt19937 generator(1);
  do {
    std::shuffle(values.begin(), values.end(), generator);
  } while (corrected_lag1_autocorrelation(values) > 0);
  return values;
}

TEST(Quantile, AgreesWithTypeSevenByHand) {
  const std::vector<double> values{1, 2, 4, 8};
  EXPECT_DOUBLE_EQ(quantile(values, 0.25), 1.75);  // position 0.75 between 1 and 2
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 3.0);
  EXPECT_DOUBLE_EQ(quantile(values, 0.75), 5.0);
  EXPECT_DOUBLE_EQ(quantile(values, 0.0), 1.0);
  EXPECT_DOUBLE_EQ(quantile(values, 1.0), 8.0);
  EXPECT_TRUE(std::isnan(quantile({}, 0.5)));
}

// Ranks of the 95 % interval of the median as tabulated in textbooks (Conover, table A3; Hahn & Meeker, table A.15).
TEST(MedianInterval, TakesTheTabulatedRanks) {
  struct Row {
    int n, low, high;
  };
  for (const Row row : {Row{6, 1, 6}, Row{8, 1, 8}, Row{9, 2, 8}, Row{10, 2, 9}, Row{15, 4, 12}, Row{20, 6, 15},
                        Row{25, 8, 18}, Row{30, 10, 21}, Row{50, 18, 33}, Row{100, 40, 61}}) {
    const Interval interval = median_interval(shuffled_one_to(row.n));
    EXPECT_EQ(interval.low, row.low) << "n = " << row.n;
    EXPECT_EQ(interval.high, row.high) << "n = " << row.n;
  }
}

TEST(MedianInterval, IsTheRangeWhenThereAreTooFewSamples) {
  const Interval interval = median_interval(std::vector<double>{3, 1, 5, 2, 4});
  EXPECT_EQ(interval.low, 1);
  EXPECT_EQ(interval.high, 5);
}

TEST(MedianInterval, IsWidenedByPositiveAutocorrelation) {
  std::vector<double> nearly_shuffled = one_to(20);
  std::mt19937 generator(1);
  double rho = 0;
  while (rho < 0.05 || rho > 0.2) {
    std::shuffle(nearly_shuffled.begin(), nearly_shuffled.end(), generator);
    rho = corrected_lag1_autocorrelation(nearly_shuffled);
  }
  ASSERT_LT(rho, 1 / std::sqrt(20.0)) << "more than the first lag would count";
  const double inflation = (1 + rho) / (1 - rho);
  const double t_of_20 = 2.0930240544;  // 97.5 %, 19 degrees of freedom
  const double widening = std::sqrt(inflation) * student_t_quantile(0.975, 20 / inflation - 1) / t_of_20;
  ASSERT_LT(widening * 4.5, 9.5) << "beyond the range";
  const Interval interval = median_interval(nearly_shuffled);
  EXPECT_NEAR(interval.low, 10.5 - widening * 4.5, 1e-8);
  EXPECT_NEAR(interval.high, 10.5 + widening * 4.5, 1e-8);
}

// A time's interval must not reach below what was ever seen, let alone below zero.
TEST(MedianInterval, IsNeverWiderThanTheRange) {
  const Interval interval = median_interval(one_to(20));  // ρ = 0.85: the widening would give −5.3 and 26.3
  EXPECT_EQ(interval.low, 1);
  EXPECT_EQ(interval.high, 20);
}

// Worked by hand: 2 4 4 4 5 5 7 9 has mean 5
// and Σ(x − 5)² = 32.
TEST(Summary, AgreesWithHandComputedMoments) {
  const Summary summary = summarize(std::vector<double>{2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(summary.n, 8);
  EXPECT_DOUBLE_EQ(summary.mean, 5.0);
  EXPECT_DOUBLE_EQ(summary.standard_deviation, std::sqrt(32.0 / 7.0));
  EXPECT_DOUBLE_EQ(summary.median, 4.5);
  EXPECT_DOUBLE_EQ(summary.q1, 4.0);
  EXPECT_DOUBLE_EQ(summary.q3, 5.5);
  EXPECT_DOUBLE_EQ(summary.min, 2.0);
  EXPECT_DOUBLE_EQ(summary.max, 9.0);
}

TEST(Summary, OfOneSampleHasNoSpread) {
  const Summary summary = summarize(std::vector<double>{3.5});
  EXPECT_EQ(summary.n, 1);
  EXPECT_EQ(summary.median, 3.5);
  EXPECT_EQ(summary.standard_deviation, 0.0);
  EXPECT_EQ(summary.median_95.low, 3.5);
  EXPECT_EQ(summary.median_95.high, 3.5);
}

TEST(Summary, OfNothingIsNotANumber) {
  const Summary summary = summarize({});
  EXPECT_EQ(summary.n, 0);
  EXPECT_TRUE(std::isnan(summary.median));
  EXPECT_TRUE(std::isnan(summary.median_95.low));
}

// Coverage is what the interval promises: 2,000 series of white noise, seeded, each with a known median of 0.
TEST(MedianInterval, CoversTheTrueMedianAsOftenAsItSays) {
  std::mt19937 generator(20260501);
  std::normal_distribution<double> noise;
  int covered = 0;
  constexpr int kTrials = 2000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> series(30);
    for (double& value : series) value = noise(generator);
    const Interval interval = median_interval(series);
    if (interval.low <= 0 && 0 <= interval.high) ++covered;
  }
  EXPECT_GE(covered, kTrials * 95 / 100);
  EXPECT_LE(covered, kTrials * 995 / 1000);  // an interval that always covers says nothing
}

RC_GTEST_PROP(QuantileProperty, IsBetweenItsNeighboursInTheSortedSeries, ()) {
  auto values = *rc::gen::nonEmpty(rc::gen::container<std::vector<double>>(
      rc::gen::map(rc::gen::inRange(-1000, 1000), [](int value) { return value / 8.0; })));
  std::sort(values.begin(), values.end());
  const double p = *rc::gen::inRange(0, 101) / 100.0;
  const double found = quantile(values, p);
  const double position = p * static_cast<double>(values.size() - 1);
  RC_ASSERT(found >= values[static_cast<std::size_t>(std::floor(position))]);
  RC_ASSERT(found <= values[static_cast<std::size_t>(std::ceil(position))]);
}

RC_GTEST_PROP(MedianIntervalProperty, ContainsTheMedian, ()) {
  const auto values = *rc::gen::nonEmpty(rc::gen::container<std::vector<double>>(
      rc::gen::map(rc::gen::inRange(-1000, 1000), [](int value) { return value / 8.0; })));
  const Summary summary = summarize(values);
  RC_ASSERT(summary.median_95.low <= summary.median);
  RC_ASSERT(summary.median <= summary.median_95.high);
}

}  // namespace
}  // namespace syslab::stats
