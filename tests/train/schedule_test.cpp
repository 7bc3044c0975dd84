#include "train/schedule.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "tests/model/refusal.hpp"

namespace syslab::train {
namespace {

constexpr CosineSchedule kCosine{.largest = 1.0, .smallest = 0.1, .warmup = 7, .cycle = 21};

TEST(CosineSchedule, RisesLinearlyFromZeroAndFallsAsACosine) {
  EXPECT_EQ(kCosine.at(0), 0);
  EXPECT_DOUBLE_EQ(kCosine.at(1), 1.0 / 7);
  EXPECT_DOUBLE_EQ(kCosine.at(6), 6.0 / 7);
  EXPECT_EQ(kCosine.at(7), 1.0);
  EXPECT_DOUBLE_EQ(kCosine.at(14), 0.55);  // half way: the mean of both
  // A sixth of the way: cos(π / 6) is not at a step; a seventh: 0.1 + 0.45 (1 + cos(π / 7)).
  EXPECT_NEAR(kCosine.at(9), 0.1 + 0.45 * (1 + 0.900968867902419), 1e-15);
  EXPECT_EQ(kCosine.at(21), 0.1);
  EXPECT_EQ(kCosine.at(22), 0.1);
  EXPECT_EQ(kCosine.at(1'000'000), 0.1);
}

TEST(CosineSchedule, NeverRisesAfterTheWarmUp) {
  for (std::int64_t step = 7; step < 25; ++step) EXPECT_GE(kCosine.at(step), kCosine.at(step + 1));
}

TEST(CosineSchedule, MayHaveNoWarmUpOrNothingElse) {
  EXPECT_EQ((CosineSchedule{.largest = 1, .smallest = 0, .warmup = 0, .cycle = 10}.at(0)), 1);
  EXPECT_EQ((CosineSchedule{.largest = 1, .smallest = 0.5, .warmup = 4, .cycle = 4}.at(3)), 0.75);
  EXPECT_EQ((CosineSchedule{.largest = 1, .smallest = 0.5, .warmup = 4, .cycle = 4}.at(4)), 0.5);
}

TEST(CosineSchedule, RefusesRatesAndStepsThatCannotBe) {
  const auto refuses = [](CosineSchedule schedule, const char* says) {
    return test::refuses([&] { validate(schedule); }, says);
  };
  EXPECT_NO_THROW(validate(kCosine));
  EXPECT_TRUE(refuses({.largest = 0.1, .smallest = 0.2}, "from 0.1 down to 0.2"));
  EXPECT_TRUE(refuses({.largest = 0.1, .smallest = -0.2}, "down to -0.2"));
  EXPECT_TRUE(refuses({.largest = std::numeric_limits<double>::quiet_NaN(), .smallest = 0}, "from nan"));
  EXPECT_TRUE(refuses({.largest = std::numeric_limits<double>::infinity(), .smallest = 0}, "from inf"));
  EXPECT_TRUE(refuses({.warmup = 10, .cycle = 9}, "a warm-up of 10 steps in a cycle of 9"));
  EXPECT_TRUE(refuses({.warmup = -1, .cycle = 9}, "a warm-up of -1"));
}

}  // namespace
}  // namespace syslab::train
