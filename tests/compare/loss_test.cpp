#include "compare/loss.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace syslab::cli {
namespace {

// A later revision takes so many times as long, known to so much of itself.
Change times(double factor, double relative_half_width, double delta = 0.01, int launches = 5) {
  const double ratio = std::log(factor), half = std::log1p(relative_half_width);
  return {.log_ratio = ratio,
          .interval = {ratio - half, ratio + half},
          .launches = launches,
          .delta = delta,
          .launch_seconds = 1};
}

// `--delta 50%` found the commit of a loss of 25 %.
TEST(Loss, IsConfirmedAboveDeltaOnlyAsCompareSaysSlower) {
  for (const double delta : {0.01, 0.1, 0.25, 0.5}) {
    for (const double factor : {0.5, 0.9, 0.999, 1.0, 1.005, 1.02, 1.1, 1.25, 1.3, 1.5, 1.6, 3.0}) {
      for (const double half : {0.001, 0.03, 0.3}) {
        const Change change = times(factor, half, delta);
        const bool slower = stats::verdict(change.interval, delta) == stats::Verdict::slower;
        EXPECT_EQ(loss_of(change) == Loss::above, slower) << factor << " ± " << half << ", " << delta;
      }
    }
  }
  EXPECT_EQ(loss_of(times(1.25, 0.01, 0.5)), Loss::not_above);
  EXPECT_EQ(loss_of(times(1.25, 0.01, 0.01)), Loss::above);
}

TEST(Loss, IsNotThereOnlyIfTheIntervalEndsAtDeltaOrBelow) {
  EXPECT_EQ(loss_of(times(1.25, 0.19, 0.5)), Loss::not_above);
  EXPECT_EQ(loss_of(times(1.25, 0.21, 0.5)), Loss::unclear);
  EXPECT_EQ(loss_of(times(1.0, 0.003)), Loss::not_above);
  EXPECT_EQ(loss_of(times(1.0, 0.03)), Loss::unclear) << "no difference, and 3 % would not have been seen";
  EXPECT_EQ(loss_of(times(0.95, 0.05)), Loss::not_above) << "compare says unclear: same or faster, but not slower";
  EXPECT_EQ(loss_of(times(1.6, 0.1, 0.5)), Loss::unclear);
}

TEST(Loss, OfTooFewLaunchesOrWithoutAnIntervalIsUnclear) {
  EXPECT_EQ(loss_of(times(2, 0.01, 0.01, 2)), Loss::unclear);
  EXPECT_EQ(why_unclear(times(2, 0.01, 0.01, 2)), "2 launches a side; a verdict takes 3");
  Change none = times(2, 0.01);
  none.interval = {std::nan(""), std::nan("")};
  EXPECT_EQ(loss_of(none), Loss::unclear);
  EXPECT_EQ(answer_of(none, 0.1), Answer::unknown);
  Change failed = times(2, 0.01);
  failed.failed = verdict::incomparable("side B crashed");
  EXPECT_EQ(loss_of(failed), Loss::unclear);
  EXPECT_EQ(answer_of(failed, 0.1), Answer::unknown);
}

TEST(Loss, AGainIsOneThatCompareCallsFaster) {
  EXPECT_TRUE(is_gain(times(0.8, 0.01)));
  EXPECT_FALSE(is_gain(times(0.8, 0.01, 0.5)));
  EXPECT_FALSE(is_gain(times(1.0, 0.001)));
}

TEST(Loss, AStepIsSlowIfItHasMoreThanHalfOfTheLoss) {
  const double half = std::log(1.69) / 2;
  EXPECT_EQ(answer_of(times(1.25, 0.01), half), Answer::good);
  EXPECT_EQ(answer_of(times(1.35, 0.01), half), Answer::bad);
  EXPECT_EQ(answer_of(times(1.3, 0.01), half), Answer::unknown);
}

// Two commits of 30 % each make 69 %: more than 50 %, which neither of them is.
TEST(Loss, OfTwoCommitsIsPinnedOnNeitherOfThem) {
  const Change whole = times(1.69, 0.01, 0.5), neighbours = times(1.3, 0.01, 0.5);
  EXPECT_EQ(loss_of(whole), Loss::above);
  EXPECT_EQ(loss_of(neighbours), Loss::not_above);
  EXPECT_TRUE(is_part_of(neighbours, whole));
  EXPECT_EQ(why_no_single(neighbours, whole),
            "+30.0 % (99 %: +28.7 % … +31.3 %), not more than 50 %; the whole loss, +69.0 % (99 %: +67.3 % … +70.7 %), "
            "was made by more than one commit");
  EXPECT_TRUE(why_no_single(times(1.3, 0.45, 0.9), times(1.95, 0.02, 0.9)).ends_with("wrong by chance"))
      << "the intervals meet";
}

TEST(Loss, WhatOthersLostIsSaidWithTheCommitThatIsFound) {
  const Change whole = times(1.69, 0.01, 0.2), neighbours = times(1.3, 0.01, 0.2);
  EXPECT_EQ(loss_of(neighbours), Loss::above);
  EXPECT_EQ(what_else_was_lost(neighbours, whole),
            "It is not the only one: the last commit against the first takes +69.0 % (99 %: +67.3 % … +70.7 %) time.");
  EXPECT_EQ(what_else_was_lost(times(1.68, 0.01, 0.2), whole), "") << "all of it, as far as the intervals tell";
  EXPECT_EQ(what_else_was_lost(whole, whole), "");
}

// 0.0583 from the border, 2.37 standard errors: 0.1133 is 4.604 of them. By chi squared of 4 degrees of freedom
// launches vary by 0.817 to 1.558 of what these did: 3.499 / √8 · 0.817 and 2.878 / √19 · 1.558 are less than 2.37 /
// √5.
TEST(Loss, UnclearSaysWhichBorderAndHowManyLaunchesWouldTell) {
  EXPECT_EQ(why_unclear(times(1.59, 0.12, 0.5)),
            "the interval reaches across +50 %. At this noise 8 to 19 launches would tell if the ratio stays: "
            "--launches 19, about 19.0 s.");
}

// `compare` and `bisect` say the same.
TEST(Loss, UnclearNamesTheCrowdAndNoNumber) {
  Change change = times(1.59, 0.12, 0.5);
  change.crowd = Crowd{9.7, 2};
  EXPECT_EQ(
      why_unclear(change),
      "the interval reaches across +50 %. Others wanted this machine's 2 processors when it began (load 9.7): ask "
      "again when they have ended.");
  EXPECT_EQ(why_unclear(times(1.59, 0.12, 0.5, 4)),
            "the interval reaches across +50 %. 4 launches are too few for a forecast; try --launches 12 first, "
            "about 12.0 s.");
}

// Otherwise to ask again, as advised, would change nothing.
TEST(Loss, WhatWasMeasuredInACrowdIsMeasuredAgainWithoutOne) {
  Change change = times(1.59, 0.12, 0.5);
  EXPECT_FALSE(is_spoiled(change, {}));
  change.crowd = Crowd{9.7, 2};
  EXPECT_TRUE(is_spoiled(change, {}));
  EXPECT_FALSE(is_spoiled(change, Crowd{5, 2})) << "it would be no better";
}

TEST(Loss, TheDeltaIsComparesOwnIfNoneIsAsked) {
  const std::vector<stats::PairedBlock> blocks{{0, 0.1}, {1, 0.1}, {2, 0.1}};
  EXPECT_EQ(change_of(blocks, 19e-6, {}).delta, 0.02);
  EXPECT_EQ(change_of(blocks, 21e-6, {}).delta, 0.01);
  EXPECT_EQ(change_of(blocks, 19e-6, 0.5).delta, 0.5);
  EXPECT_EQ(change_of(blocks, 21e-6, {}).launches, 3);
}

TEST(Loss, IsPrintedWithEnoughDigitsToCompareWithDelta) {
  Change change = times(1.5003, 0.00005, 0.5);
  EXPECT_EQ(text_of(change), "+50.03 % (99 %: +50.02 % … +50.04 %)");
  change.delta = 0.01;
  EXPECT_EQ(text_of(change), "+50.0 % (99 %: +50.0 % … +50.0 %)");
}

}  // namespace
}  // namespace syslab::cli
