#include "stats/change_point.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace syslab::stats {
namespace {

// Levels of 30 values each, `step` apart, with normal noise.
std::vector<double> levels(const std::vector<double>& steps, double noise, unsigned seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal(0, noise);
  std::vector<double> logs;
  for (const double step : steps) {
    for (int i = 0; i < 30; ++i) logs.push_back(step + normal(generator));
  }
  return logs;
}

TEST(ChangePoint, FindsAStepWhereItIs) {
  int found = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    const auto points = change_points(levels({0, 0.03}, 0.005, seed), 0.01);
    if (points.size() == 1 && points[0].at == 30) {
      ++found;
      EXPECT_NEAR(points[0].log_ratio, 0.03, 0.006);
    }
  }
  EXPECT_GE(found, 95);
}

TEST(ChangePoint, FindsTwoOfThemInOrder) {
  const auto points = change_points(levels({0, 0.05, -0.02}, 0.005, 1), 0.01);
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].at, 30U);
  EXPECT_EQ(points[1].at, 60U);
  EXPECT_NEAR(points[1].log_ratio, -0.07, 0.01);
}

TEST(ChangePoint, NoiseIsNone) {
  int found = 0;
  for (unsigned seed = 0; seed < 100; ++seed) found += change_points(levels({0, 0}, 0.02, seed), 0.01).empty() ? 0 : 1;
  EXPECT_LE(found, 5);
}

TEST(ChangePoint, FewValuesThatGoUpAndDownAreNoStep) {
  for (const std::size_t count : {3U, 4U, 5U}) {
    std::vector<double> logs;
    for (std::size_t i = 0; i < count; ++i) logs.push_back(i % 2 == 0 ? 0 : 0.05);
    EXPECT_TRUE(change_points(logs, 0.01).empty()) << count;
    for (std::size_t i = 0; i < count; ++i) logs[i] += 1e-4 * static_cast<double>(i);
    EXPECT_TRUE(change_points(logs, 0.01).empty()) << count;
  }
  int found = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    const std::vector<double> logs = levels({0}, 0.02, seed);
    found += change_points(std::span(logs).first(5), 0.01).empty() ? 0 : 1;
  }
  EXPECT_LE(found, 10);
  // A step of three and more is one all the same.
  ASSERT_EQ(change_points(std::vector{0.0, 0.001, 0.05, 0.051, 0.05}, 0.01).size(), 1U);
  EXPECT_EQ(change_points(std::vector{0.0, 0.001, 0.05, 0.051, 0.05}, 0.01)[0].at, 2U);
}

TEST(ChangePoint, OfFewValuesTheDifferenceDecides) {
  EXPECT_EQ(change_points(std::vector{0.0, 0.05, 0.05}, 0.01).size(), 1U);
  EXPECT_EQ(change_points(std::vector{0.0, 0.05}, 0.01).size(), 1U);
  EXPECT_TRUE(change_points(std::vector{0.0, 0.005, 0.005}, 0.01).empty());
  EXPECT_TRUE(change_points(std::vector{0.0}, 0.01).empty());
  EXPECT_TRUE(change_points({}, 0.01).empty());
}

}  // namespace
}  // namespace syslab::stats
