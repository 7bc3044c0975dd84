#include "stats/noise.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace syslab::stats {
namespace {

using Labels = std::vector<std::string>;

std::vector<double> around_one(std::size_t n, double deviation, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(1, deviation);
  std::vector<double> series(n);
  for (double& value : series) value = normal(generator);
  return series;
}

TEST(NoiseLabels, AreNoneForPlainNoise) {
  EXPECT_EQ(noise_labels(around_one(100, 0.01, 1)), Labels{});
  EXPECT_EQ(noise_labels(std::vector<double>(50, 2.5)), Labels{});
}

TEST(NoiseLabels, NameTooFewSamplesForAnInterval) {
  EXPECT_EQ(noise_labels(around_one(5, 0.01, 1)), Labels{"few_samples"});
  EXPECT_EQ(noise_labels(around_one(6, 0.01, 1)), Labels{});
}

TEST(NoiseLabels, NameTwoModes) {
  std::vector<double> series = around_one(60, 0.002, 2);
  std::mt19937 generator(5);
  for (double& value : series) value += generator() % 3 == 0 ? 0.1 : 0;
  EXPECT_EQ(noise_labels(series), Labels{"bimodal"});
}

TEST(NoiseLabels, TakeATickOfTheClockForNoMode) {
  std::vector<double> series(60, 1.0);
  std::mt19937 generator(5);
  for (double& value : series) value += generator() % 2 == 0 ? 0.005 : 0;
  EXPECT_EQ(noise_labels(series), Labels{});
}

TEST(NoiseLabels, TakeAFewStragglersForNoMode) {
  std::vector<double> series = around_one(60, 0.002, 2);
  for (std::size_t i = 0; i < series.size(); i += 15) series[i] += 0.5;  // outside the middle 80 %
  EXPECT_EQ(noise_labels(series), Labels{});
}

TEST(NoiseLabels, NameADriftBeyondOnePercent) {
  for (const double drift : {0.02, -0.02, 0.005}) {
    std::vector<double> series = around_one(200, 0.01, 3);
    for (std::size_t i = 0; i < series.size(); ++i) series[i] += drift * static_cast<double>(i) / 199;
    EXPECT_EQ(noise_labels(series), std::abs(drift) > 0.01 ? Labels{"drifting"} : Labels{}) << drift;
  }
}

TEST(NoiseLabels, NameWander) {
  std::mt19937 generator(8);
  std::normal_distribution<double> normal;
  std::vector<double> series(200);
  double state = 0;
  for (double& value : series) value = 1 + 0.001 * (state = 0.8 * state + normal(generator));
  EXPECT_EQ(noise_labels(series), Labels{"autocorrelated"});
}

// Two series in a hundred of plain noise may bear a wrong word at n = 45.
TEST(NoiseLabels, SeldomNameWhatIsNotThere) {
  for (const double deviation : {0.002, 0.05}) {
    int labelled = 0;
    for (unsigned seed = 0; seed < 300; ++seed)
      labelled += noise_labels(around_one(45, deviation, seed)).empty() ? 0 : 1;
    EXPECT_LE(labelled, 6) << deviation;
  }
}

// Averaging neighbours of a long series hides no drift, and outliers make none.
TEST(NoiseLabels, NameTheDriftOfALongSeriesAndForgiveOutliers) {
  const auto drifts = [](const std::vector<double>& series) {
    const Labels labels = noise_labels(series);
    return std::find(labels.begin(), labels.end(), "drifting") != labels.end();
  };
  std::vector<double> rising(3000), level(3000);
  for (std::size_t i = 0; i < rising.size(); ++i) {
    const double ripple = 0.001 * static_cast<double>(i * 7 % 13);
    rising[i] = 5 + 0.0001 * static_cast<double>(i) + ripple;
    level[i] = 5 + ripple;
  }
  for (std::size_t i = 0; i < level.size(); i += 100) rising[i] = level[i] = 1e6;
  EXPECT_TRUE(drifts(rising));
  EXPECT_FALSE(drifts(level));
}

}  // namespace
}  // namespace syslab::stats
