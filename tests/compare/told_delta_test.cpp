#include "compare/told_delta.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace syslab::cli {
namespace {

Change between(double low, double high, double delta) {
  return {.log_ratio = (std::log1p(low) + std::log1p(high)) / 2,
          .interval = {std::log1p(low), std::log1p(high)},
          .launches = 5,
          .delta = delta};
}

std::string told(const Change& change) {
  return would_tell_now({delta_below(change.interval), delta_above(change.interval)}, change);
}

TEST(ToldDelta, AreThoseBeyondTheEndsOfTheInterval) {
  EXPECT_EQ(told(between(-0.0314, 0.0476, 0.01)), "--delta 4.8% would tell now.");
  EXPECT_EQ(told(between(0.0917, 0.218, 0.15)), "--delta 9.1% or --delta 22% would tell now.");
  EXPECT_EQ(told(between(-0.2, -0.1, 0.01)), "") << "there is no loss";
  EXPECT_EQ(told(between(-0.2, 0.9, 0.01)), "") << "nobody asks whether it is less than 90 %";
  EXPECT_EQ(told(between(0.295, 0.895, 0.5)), "--delta 29% or --delta 90% would tell now.");
}

TEST(ToldDelta, DecideAsTheyPromise) {
  for (const double low : {0.0011, 0.02, 0.0999, 0.1, 0.33}) {
    for (const double width : {0.003, 0.05, 0.1}) {
      Change change = between(low, low + width, 0.2);
      change.delta = *delta_below(change.interval);
      EXPECT_EQ(loss_of(change), Loss::above) << low << " " << width << " " << delta_option(change.delta);
      change.delta = *delta_above(change.interval);
      EXPECT_EQ(loss_of(change), Loss::not_above) << low << " " << width << " " << delta_option(change.delta);
    }
  }
}

TEST(ToldDelta, OfACommitMustDecideAboutTheWholeLossToo) {
  const Change commit = between(0.105, 0.2, 0.15), whole = between(0.18, 0.25, 0.15);
  EXPECT_EQ(would_tell_now({delta_below(commit.interval), delta_above(commit.interval)}, whole),
            "--delta 10% would tell now.");
}

TEST(ToldDelta, OfAPartLiesBelowTheWholeLoss) {
  const Change whole = between(0.249, 0.25, 0.1);
  EXPECT_EQ(delta_within(whole.interval, whole), std::nullopt) << "a search with it ends before it looks at parts";
  EXPECT_EQ(delta_within(between(0.1, 0.12, 0.1).interval, whole), 0.13);
}

}  // namespace
}  // namespace syslab::cli
