#include "compare/advice.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "compare/session.hpp"
#include "stats/detect.hpp"

namespace syslab::cli {
namespace {

const std::vector<double> kLaunchesOfTwoSeconds(12, 2.0);

// Twelve launches that know log(B / A) as `ratio` ± `half`.
verdict::Judgement unclear(double ratio, double half) {
  verdict::Judgement it;
  it.launches = 12;
  it.log_ratio = ratio;
  it.low = ratio - half;
  it.high = ratio + half;
  return it;
}

// 0.015 is 0.00505 above log 1.01: half of the interval's 0.0101. Of twelve launches that is 2.201 standard errors, so
// that t / √N must be 0.3177. Chi squared of 11 degrees of freedom is 14.63 at 80 % and 6.99 at 20 %: launches vary by
// 0.867 to 1.255 of what these did, which takes 32 launches (2.040 / √32 = 0.3605) to 63 (1.999 / √63 = 0.2518).
TEST(Advice, SaysHowManyLaunchesWouldLeaveTheNearestBorder) {
  const double room = 0.015 - std::log(1.01);
  for (const double sign : {1, -1}) {
    EXPECT_EQ(what_would_do(unclear(sign * 0.015, 2 * room), kLaunchesOfTwoSeconds, {}),
              "At this noise 32 to 63 launches would tell if the ratio stays: --launches 63, about 2 m 6 s.");
  }
}

// Twelve launches of two seconds, and one border.
Doubt doubt(double half_width, double beside, int launches = 12) {
  return {.half_width = half_width, .beside = beside, .launches = launches, .seconds = 2};
}

// Of a claim, 1 % beside its border with an interval of ±2 %, the same.
TEST(Advice, SaysHowManyLaunchesWouldTellOfAClaim) {
  EXPECT_EQ(what_would_do(doubt(0.02, 0.01), {}),
            "At this noise 32 to 63 launches would tell if the ratio stays: --launches 63, about 2 m 6 s.");
  Doubt slow = doubt(0.02, 0.01);
  slow.seconds = 1000;
  EXPECT_EQ(what_would_do(slow, {}), "At this noise no number of launches that one waits for tells.");
}

// The scatter of three is known to a factor of 2.7, of four to one of 2.2.
TEST(Advice, ForetellsNothingOfAFewLaunches) {
  for (const int few : {3, 4}) {
    EXPECT_EQ(what_would_do(doubt(0.03, 0.02, few), {}),
              fmt::format("{} launches are too few for a forecast; try --launches 12 first, about 24.0 s.", few));
  }
  EXPECT_NE(what_would_do(doubt(0.03, 0.02, 5), {}).find(" would tell if the ratio stays: --launches "),
            std::string::npos);
  Doubt slow = doubt(0.03, 0.02, 3);
  slow.seconds = 1000;
  EXPECT_EQ(what_would_do(slow, {}), "3 launches are too few for a forecast.");
  verdict::Judgement three = unclear(0.015, 0.02);
  three.launches = 3;
  EXPECT_EQ(what_would_do(three, kLaunchesOfTwoSeconds, {}), what_would_do(doubt(0.02, 0.005, 3), {}));
}

// bisect once advised 823 launches of a ratio this close to its border, and five told.
TEST(Advice, NamesNoNumberWhereTheRatioIsOnTheBorder) {
  const std::string on_border =
      "The ratio is within one standard error of the border: at this noise it takes at least ";
  const std::string text = what_would_do(doubt(0.1, 0.1 / 12.8, 5), {});
  EXPECT_TRUE(text.starts_with(on_border)) << text;
  EXPECT_EQ(text.find("--launches"), std::string::npos) << text;
  // The half-width is 2.201 standard errors.
  EXPECT_TRUE(what_would_do(doubt(2.201, 0.99), {}).starts_with(on_border));
  EXPECT_TRUE(what_would_do(doubt(2.201, 1.01), {}).starts_with("At this noise "));
}

// By the distance from a border of nothing at all, which no chance moves.
TEST(Advice, OfARatioThatMayBeNoneAssumesThatItIs) {
  for (const double ratio : {0.0, 0.003, 0.011}) {
    const std::string text = what_would_do(unclear(ratio, 0.02), kLaunchesOfTwoSeconds, {});
    EXPECT_NE(text.find(" launches would tell if there is no difference: --launches "), std::string::npos) << text;
    EXPECT_EQ(text, what_would_do(unclear(-ratio, 0.02), kLaunchesOfTwoSeconds, {}));
  }
}

// 63 minutes by the most noise, more than one waits, and 32 by the least.
TEST(Advice, SaysAtLeastWhereOnlyTheLeastNoiseIsWithinReach) {
  Doubt slow = doubt(0.02, 0.01);
  slow.seconds = 60;
  EXPECT_EQ(what_would_do(slow, {}),
            "At this noise at least 32 launches would tell if the ratio stays, about 32 m 0 s.");
}

// Whoever asks for 2 % in vain is told what can be seen, not a width that lies below 2 %.
TEST(Advice, WhatIsBeyondThisMachineIsToldWithWhatIsNot) {
  MeasuredPoint pilot;
  for (int launch = 0; launch < 3; ++launch) {
    pilot.launch_seconds.push_back(1.0);
    for (int block = 0; block < 4; ++block) {
      const double apart = 0.1 * (launch - 1) + 0.01 * (block % 2);
      pilot.blocks.push_back({launch, block, "ABBA", {1e-3, 1e-3, 1e-3, 1e-3}, apart});
    }
  }
  const Detection found = detection(pilot, 0.02, 0.01);
  EXPECT_FALSE(found.plan.reached);
  const std::size_t at = found.text.find("tell no less than ");
  ASSERT_NE(at, std::string::npos) << found.text;
  EXPECT_GT(std::stod(found.text.substr(at + std::strlen("tell no less than "))), 2) << found.text;
}

// +20 % that may as well be none promises nothing: 12 · (1.2 / log 1.01)² launches, and not 12 · (1.2 / 0.17)².
TEST(Advice, DoesNotCountOnARatioThatMayBeNone) {
  EXPECT_EQ(
      what_would_do(unclear(0.18, 1.2), kLaunchesOfTwoSeconds, {}),
      "At this noise no number of launches that one waits for tells 1 %, and these scatter too much for any useful "
      "--delta: measure on a quiet machine, or calls that take longer.");
}

TEST(Advice, SaysWhatIsWithinReachWhereNoNumberOfLaunchesWouldDo) {
  EXPECT_EQ(what_would_do(unclear(0.07, 0.3), std::vector<double>(12, 10.0), {}),
            "At this noise no number of launches that one waits for tells 1 %; with --delta 45% these do.");
  EXPECT_NE(what_would_do(unclear(0.07, 3), kLaunchesOfTwoSeconds, {}).find("for any useful --delta: "),
            std::string::npos);
  verdict::Judgement coarse = unclear(0.3, 0.2);  // who asks for 40 % is told of 65 %
  coarse.delta = 0.4;
  EXPECT_NE(what_would_do(coarse, std::vector<double>(12, 1e4), {}).find("with --delta 65% these do."),
            std::string::npos);
}

// `--delta` of the advice holds the whole interval: then it is `same`.
TEST(Advice, WhatItSaysIsWithinReachIs) {
  for (const double half : {0.03, 0.1, 0.2, 0.38}) {
    const verdict::Judgement it = unclear(0.02, half);
    const std::string text = what_would_do(it, std::vector<double>(12, 1e4), {});
    const double delta = std::stod(text.substr(text.find("--delta ") + 8)) / 100;
    EXPECT_EQ(stats::verdict({*it.low, *it.high}, delta), stats::Verdict::same) << text;
  }
}

// What was measured then is no base for a number.
TEST(Advice, OfACrowdNamesNoNumber) {
  const std::string others =
      "Others wanted this machine's 2 processors when it began (load 9.7): ask again when they have ended.";
  const Crowd crowd{9.7, 2};
  EXPECT_EQ(what_would_do(unclear(0.07, 0.4), kLaunchesOfTwoSeconds, crowd), others);
  EXPECT_EQ(what_would_do(unclear(0.015, 0.02), kLaunchesOfTwoSeconds, crowd), others);
  EXPECT_EQ(what_would_do(doubt(0.03, 0.01), crowd), others);
  EXPECT_EQ(busy_text(crowd), "this machine is busy (load 9.7, 2 processors): a call's time holds what it waits for");
}

TEST(Advice, IsOfVerdictsThatWantIt) {
  verdict::Judgement same = unclear(0, 0.001);
  same.verdict = stats::Verdict::same;
  EXPECT_EQ(what_would_do(same, kLaunchesOfTwoSeconds, Crowd{9.7, 2}), "");
  verdict::Judgement few = unclear(0.07, 0.4);
  few.launches = 2;
  EXPECT_EQ(what_would_do(few, kLaunchesOfTwoSeconds, {}), "");
  few.low.reset();
  EXPECT_EQ(what_would_do(few, kLaunchesOfTwoSeconds, {}), "");
}

// Launches of two blocks each, which hardly differ; the launches' middles are `ratio` and `noise` of it.
std::vector<stats::PairedBlock> launched(const std::vector<double>& noise, double ratio = 0) {
  std::vector<stats::PairedBlock> blocks;
  for (std::size_t launch = 0; launch < noise.size(); ++launch) {
    for (const double beside : {-1e-4, 1e-4}) {
      blocks.push_back({static_cast<int>(launch), ratio + noise[launch] + beside});
    }
  }
  return blocks;
}

const std::vector<double> kThree{-0.05, 0, 0.05}, kSix{-0.05, 0, 0.05, -0.05, 0, 0.05};
const Ahead kTwenty{20, 2.0, {}};

// Launches differ by 5 % (standard deviation): of twenty the standard error is 1.118 %, and 2.093 + 1.729 of it tell a
// change from none (t of 19 degrees of freedom, 97.5 % and 95 %): 4.4 %. If they differ by the least that three such
// launches make likely, 5 % · √(2 / 3.22), it takes 208 of them for 1 %: 3.624 · 3.94 % / √208 = 0.99 %.
TEST(Outlook, SaysAfterThreeLaunchesThatTheBudgetWillNotDo) {
  EXPECT_EQ(what_will_not_do(launched(kThree), 0.01, kTwenty),
            "at this noise 20 launches (40.0 s) tell 4.4 %, hardly 1 %: --launches 208 or more would, about 6 m 56 s, "
            "--delta 4.4% these; it goes on unless you stop it (Ctrl-C)");
}

// Three launches that differ by 5 % may be of those that differ by 4 %, whose twenty are `same` within ±2 %.
TEST(Outlook, WaitsUntilTheNoiseIsKnown) {
  EXPECT_EQ(what_will_not_do(launched(kThree), 0.02, kTwenty), "");
  EXPECT_NE(what_will_not_do(launched({-0.06, 0, 0.06, -0.06, 0, 0.06}), 0.02, kTwenty), "");
}

TEST(Outlook, IsSilentWhereTheLaunchesMayDo) {
  EXPECT_EQ(what_will_not_do(launched({-0.005, 0, 0.005}), 0.02, kTwenty), "") << "little noise";
  EXPECT_EQ(what_will_not_do(launched(kSix, 0.3), 0.02, kTwenty), "") << "a change that no noise hides";
  EXPECT_EQ(what_will_not_do(launched({-0.002, 0, 0.002}, 0.0099), 0.01, kTwenty), "") << "a ratio on the border";
  EXPECT_EQ(what_will_not_do(launched(kThree), 0.01, {3, 2.0, {}}), "") << "nothing is to come";
  EXPECT_EQ(what_will_not_do(launched({-0.05}), 0.01, {2, 2.0, {}}), "") << "no verdict anyway";
  EXPECT_EQ(what_will_not_do({}, 0.01, kTwenty), "");
  EXPECT_EQ(what_will_not_do(std::vector<stats::PairedBlock>{{0, -0.5}, {1, 0.5}, {2, 0}}, 0.01, kTwenty), "")
      << "launches of one block";
}

// One launch, whose blocks lie at ±2 %: of four winsorised values the midmean's standard error is 2.8 %, that of three
// such launches 1.6 % or more, and with two degrees of freedom 4.303 of it are no 2 %.
TEST(Outlook, KnowsByTheBlocksOfTheFirstLaunchThatThreeWillNotDo) {
  const std::vector<stats::PairedBlock> one{{0, -0.02}, {0, -0.02}, {0, 0.02}, {0, 0.02}};
  const std::string text = what_will_not_do(one, 0.02, {3, 20.0, {}});
  EXPECT_TRUE(text.starts_with("at this noise 3 launches (1 m 0 s) tell ")) << text;
  EXPECT_NE(text.find(" % at best, hardly 2 %: --launches "), std::string::npos) << text;
}

TEST(Outlook, SaysSoWhereNoNumberOfLaunchesWouldDo) {
  const std::string text = what_will_not_do(launched(kSix), 0.001, {20, 30.0, {}});
  EXPECT_NE(text.find("hardly 0.1 %: no number of launches that one waits for would, --delta 3.9% these"),
            std::string::npos)
      << text;
}

// "--delta 342%" helps nobody.
TEST(Outlook, SaysSoWhereNoUsefulDeltaWouldDo) {
  std::vector<double> wild = kSix;
  for (double& one : wild) one *= 20;
  const std::string text = what_will_not_do(launched(wild), 0.01, {20, 30.0, {}});
  EXPECT_NE(text.find(": no number of launches that one waits for would, and they scatter too much for any useful "
                      "--delta (a quiet machine or calls that take longer would help); it goes on"),
            std::string::npos)
      << text;
}

// With the --delta that it names the ratio so far, if it stays, is `same`; nor is anything foretold then.
TEST(Outlook, WhatItSaysIsWithinReachIs) {
  for (const double ratio : {0.0, 0.01, -0.015}) {
    const std::string text = what_will_not_do(launched(kSix, ratio), 0.002, kTwenty);
    const std::size_t at = text.find("--delta ");
    ASSERT_NE(at, std::string::npos) << text;
    const double delta = std::stod(text.substr(at + 8)) / 100;
    EXPECT_EQ(what_will_not_do(launched(kSix, ratio), delta, kTwenty), "") << text;
    const stats::PairedSpread spread = stats::paired_spread(launched(kSix));
    EXPECT_LE(std::abs(ratio) + stats::expected_half_width(spread, 20, 2), std::log1p(delta)) << text;
  }
}

// A claim has one border: 1.1 times as fast is log(B / A) = −log 1.1.
TEST(Outlook, OfAClaimIsAboutItsBorder) {
  const Ahead ahead{20, 2.0, -std::log(1.1)};
  EXPECT_EQ(what_will_not_do(launched(kSix, -std::log(1.3)), 0.01, ahead), "");
  const std::string text = what_will_not_do(launched(kSix, -std::log(1.11)), 0.01, ahead);
  EXPECT_TRUE(
      text.starts_with("at this noise 20 launches (40.0 s) will know the ratio to ±2.2 %, and so far it is 0.91 % "
                       "beside the claim's border: too few to tell; "))
      << text;
  EXPECT_EQ(what_will_not_do(launched(kSix, 0), 0.01, {20, 2.0, -HUGE_VAL}), "") << "of a mean of several cases";
}

// How often it is said of launches with normal noise, within the first six of twenty: seldom where they will decide at
// ±2 % (of a standard deviation of 3 % half of them do), nearly always where they will not.
TEST(Outlook, IsSeldomWrongAndSeldomLate) {
  std::mt19937_64 generator(23);
  std::normal_distribution<double> normal;
  const auto said = [&](double deviation) {
    int count = 0;
    for (int trial = 0; trial < 200; ++trial) {
      std::vector<double> noise;
      std::string text;
      while (noise.size() < 6 && text.empty()) {
        noise.push_back(deviation * normal(generator));
        if (noise.size() >= 3) text = what_will_not_do(launched(noise), 0.02, kTwenty);
      }
      count += !text.empty();
    }
    return count / 200.0;
  };
  EXPECT_EQ(said(0.01), 0);
  EXPECT_LE(said(0.03), 0.1);
  EXPECT_GE(said(0.1), 0.8);
}

}  // namespace
}  // namespace syslab::cli
