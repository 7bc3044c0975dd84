#include "compare/stretches.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace syslab::cli {
namespace {

// So many percent more than the first one, from and to.
stats::Interval percent(double low, double high) { return {std::log1p(low / 100), std::log1p(high / 100)}; }

// Two commits of 10 % that make 19 %; the middle could not be told from half of it.
const std::map<int, stats::Interval> kTwoOfTen{
    {2, percent(-0.1, 0.1)}, {3, percent(9.2, 10.1)}, {4, percent(9.9, 10.1)}, {5, percent(16.8, 21.8)}};

TEST(Stretches, AreBoundedByTheEndsOfBothIntervals) {
  const std::vector<Stretch> all = stretches_of(kTwoOfTen);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].commits(), 2);
  EXPECT_DOUBLE_EQ(all[0].bounds.high, std::log1p(0.001)) << "the first one against itself has no noise";
  EXPECT_EQ(all[1].from, 2);
  EXPECT_EQ(all[1].to, 3);
  EXPECT_NEAR(all[1].bounds.low, std::log(1.092 / 1.001), 1e-12);
  EXPECT_NEAR(all[1].bounds.high, std::log(1.101 / 0.999), 1e-12);
  EXPECT_EQ(most_lost(all).to, 5);
}

TEST(Stretches, TellThatNoSingleCommitLostMore) {
  const std::vector<Stretch> all = stretches_of(kTwoOfTen), left = between(all, 2, 4);
  ASSERT_EQ(left.size(), 2U);
  EXPECT_TRUE(none_above(all, 0.15));
  EXPECT_FALSE(none_above(all, 0.10)) << "the last one: 21.8 against 9.9";
  EXPECT_TRUE(none_above(between(all, 3, 4), 0.10));
}

TEST(Stretches, TellASingleCommitThatLostMoreForCertain) {
  const std::vector<Stretch> left = between(stretches_of(kTwoOfTen), 2, 4);
  ASSERT_TRUE(surely_above(left, 0.08));
  EXPECT_EQ(surely_above(left, 0.08)->to, 3);
  EXPECT_FALSE(surely_above(left, 0.095));
  EXPECT_FALSE(surely_above(stretches_of({{2, percent(30, 31)}}), 0.01)) << "one of two, and nobody knows which";
}

TEST(Stretches, LeaveASingleCommitToBeMeasured) {
  const std::vector<Stretch> all = stretches_of(kTwoOfTen), left = between(all, 2, 4);
  ASSERT_TRUE(only_candidate(left, 0.095));
  EXPECT_EQ(only_candidate(left, 0.095)->to, 3);
  EXPECT_FALSE(only_candidate(left, 0.15)) << "none can have lost so much";
  EXPECT_FALSE(only_candidate(all, 0.095)) << "the last one, too";
  EXPECT_FALSE(only_candidate(stretches_of({{2, percent(30, 31)}}), 0.01)) << "one of two";
}

TEST(Stretches, OfNeighboursThatWereMeasuredByThemselvesAreKnownBetter) {
  std::vector<Stretch> all = stretches_of(kTwoOfTen);
  replace(all, {4, 5, percent(8, 9)});
  EXPECT_TRUE(none_above(all, 0.11));
  EXPECT_EQ(most_lost(all).to, 3);
}

}  // namespace
}  // namespace syslab::cli
