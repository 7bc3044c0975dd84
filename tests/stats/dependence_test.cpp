#include "stats/dependence.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "stats/summary.hpp"

namespace syslab::stats {
namespace {

TEST(Autocorrelation, AgreesWithHandComputedValues) {
  // mean 3; deviations −2 −1 0 1 2: products 2 + 0 + 0 + 2 = 4 over squares 10
  EXPECT_DOUBLE_EQ(lag1_autocorrelation(std::vector<double>{1, 2, 3, 4, 5}), 0.4);
  // alternating ±1, six values: five products of −1 over six squares
  EXPECT_DOUBLE_EQ(lag1_autocorrelation(std::vector<double>{1, -1, 1, -1, 1, -1}), -5.0 / 6.0);
  EXPECT_EQ(lag1_autocorrelation(std::vector<double>{7, 7, 7, 7}), 0.0);
  EXPECT_DOUBLE_EQ(corrected_lag1_autocorrelation(std::vector<double>{1, 2, 3, 4, 5}),
                   0.8);  // + 2.2/5, at most 1 − 1/5
  EXPECT_EQ(variance_inflation(std::vector<double>{7, 7, 7, 7}), 1.0);
  EXPECT_EQ(variance_inflation(std::vector<double>{1, -1, 1, -1, 1, -1}), 1.0);
}

std::vector<double> wandering(std::mt19937_64& generator, std::size_t n, double rho, double white = 0) {
  std::normal_distribution<double> noise;
  std::vector<double> series(n);
  double state = noise(generator);
  for (double& value : series) {
    state = rho * state + std::sqrt(1 - rho * rho) * noise(generator);
    value = state + white * noise(generator);
  }
  return series;
}

// The bias that the correction removes is −(1 + 3ρ) / n: −0.11 at ρ = 0.8, n = 30, to first order.
TEST(Autocorrelation, IsNearlyUnbiasedOnceCorrected) {
  std::mt19937_64 generator(3);
  for (const double rho : {0.0, 0.5, 0.8}) {
    double raw = 0;
    double corrected = 0;
    constexpr int kSeries = 2000;
    for (int i = 0; i < kSeries; ++i) {
      const std::vector<double> series = wandering(generator, 30, rho);
      raw += lag1_autocorrelation(series) / kSeries;
      corrected += corrected_lag1_autocorrelation(series) / kSeries;
    }
    EXPECT_LT(raw, rho - 0.02);
    EXPECT_LT(std::abs(corrected - rho), 0.5 * std::abs(raw - rho));
  }
}

TEST(MedianInterval, CoversAsItsHeaderSays) {
  struct Row {
    std::size_t n;
    double rho, white, at_least;
  };
  for (const Row row : {Row{20, 0.5, 0, 0.93}, Row{20, 0.8, 0, 0.88}, Row{45, 0.8, 0, 0.93}, Row{45, 0.9, 0, 0.90},
                        Row{100, 0.9, 0, 0.94}, Row{100, 0.95, 0, 0.92}, Row{100, 0.9, 0.5, 0.88}}) {
    std::mt19937_64 generator(11);
    int covered = 0;
    constexpr int kTrials = 2000;
    for (int trial = 0; trial < kTrials; ++trial) {
      const Interval interval = median_interval(wandering(generator, row.n, row.rho, row.white));
      if (interval.low <= 0 && 0 <= interval.high) ++covered;
    }
    EXPECT_GE(covered, kTrials * row.at_least) << "n " << row.n << ", rho " << row.rho << ", white " << row.white;
  }
}

}  // namespace
}  // namespace syslab::stats
