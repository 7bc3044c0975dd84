#include "compare/advice.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace syslab::cli {
namespace {

const std::vector<double> kLaunchesOfTwoSeconds(12, 2.0);

// Twelve launches that know log(B / A) as `ratio` ± `half`.
Judgement unclear(double ratio, double half) {
  Judgement it;
  it.launches = 12;
  it.log_ratio = ratio;
  it.low = ratio - half;
  it.high = ratio + half;
  return it;
}

TEST(Advice, SaysHowManyLaunchesWouldLeaveTheNearestBorder) {
  // 0.015 lies 0.00505 above log 1.01: half of the interval's 0.0101, so that four times as many are wanted.
  const double room = 0.015 - std::log(1.01);
  EXPECT_EQ(what_would_do(unclear(0.015, 2 * room), kLaunchesOfTwoSeconds, {}),
            "At this noise some 48 launches would tell: --launches 48, about 1 m 36 s.");
  EXPECT_EQ(what_would_do(unclear(-0.015, 2 * room), kLaunchesOfTwoSeconds, {}),
            "At this noise some 48 launches would tell: --launches 48, about 1 m 36 s.");
}

// +20 % that may as well be none promises nothing: 12 · (1.2 / log 1.01)² launches, and not 12 · (1.2 / 0.17)².
TEST(Advice, DoesNotCountOnARatioThatMayBeNone) {
  EXPECT_EQ(what_would_do(unclear(0.18, 1.2), kLaunchesOfTwoSeconds, {}),
            "At this noise no number of launches that one waits for tells 1 %; with --delta 298% these do.");
}

TEST(Advice, SaysWhatIsWithinReachWhereNoNumberOfLaunchesWouldDo) {
  EXPECT_EQ(what_would_do(unclear(0.07, 0.4), std::vector<double>(12, 10.0), {}),
            "At this noise no number of launches that one waits for tells 1 %; with --delta 60% these do.");
  EXPECT_EQ(what_would_do(unclear(0.07, 3), kLaunchesOfTwoSeconds, {}),
            "At this noise no number of launches that one waits for tells 1 %.");
}

// `--delta` of the advice holds the whole interval: then it is `same`.
TEST(Advice, WhatItSaysIsWithinReachIs) {
  for (const double half : {0.03, 0.1, 0.4, 1.0}) {
    const Judgement it = unclear(0.02, half);
    const std::string text = what_would_do(it, std::vector<double>(12, 1e4), {});
    const double delta = std::stod(text.substr(text.find("--delta ") + 8)) / 100;
    EXPECT_EQ(stats::verdict({*it.low, *it.high}, delta), stats::Verdict::same) << text;
  }
}

TEST(Advice, NamesTheCrowd) {
  const std::string text = what_would_do(unclear(0.07, 0.4), kLaunchesOfTwoSeconds, Crowd{9.7, 2});
  EXPECT_TRUE(text.starts_with(
      "Others wanted this machine's 2 processors when it began (load 9.7): ask again when they have ended. At "))
      << text;
}

TEST(Advice, IsOfVerdictsThatWantIt) {
  Judgement same = unclear(0, 0.001);
  same.verdict = stats::Verdict::same;
  EXPECT_EQ(what_would_do(same, kLaunchesOfTwoSeconds, Crowd{9.7, 2}), "");
  Judgement few = unclear(0.07, 0.4);
  few.launches = 2;
  EXPECT_EQ(what_would_do(few, kLaunchesOfTwoSeconds, {}), "");
  few.low.reset();
  EXPECT_EQ(what_would_do(few, kLaunchesOfTwoSeconds, {}), "");
}

}  // namespace
}  // namespace syslab::cli
