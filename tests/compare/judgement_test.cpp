#include "compare/judgement.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace syslab::cli {
namespace {

using stats::Verdict;

// Launches of one block each, side A at 1 ms, with these log ratios.
std::vector<runner::PairedBlock> launches_of(const std::vector<double>& log_ratios) {
  std::vector<runner::PairedBlock> blocks;
  for (const double log_ratio : log_ratios) {
    const double a = 1e-3, b = a * std::exp(log_ratio);
    blocks.push_back({static_cast<int>(blocks.size()), 0, "ABBA", {a, b, b, a}, log_ratio});
  }
  return blocks;
}

Judgement with(Verdict verdict, std::optional<double> p) {
  Judgement it;
  it.verdict = verdict;
  it.p_value = p;
  return it;
}

std::vector<Judgement> corrected(std::vector<Judgement> sweep) {
  std::vector<Judgement*> pointers;
  for (Judgement& it : sweep) pointers.push_back(&it);
  correct_for_sweep(pointers);
  return sweep;
}

TEST(Judgement, OfBlocksHasTheIntervalAndTheWord) {
  const Judgement it = judge(launches_of({0.099, 0.1, 0.101}), std::nullopt);
  EXPECT_EQ(it.verdict, Verdict::slower);
  EXPECT_EQ(it.launches, 3);
  EXPECT_NEAR(*it.log_ratio, 0.1, 1e-12);
  // Student's t of 97.5 % with 2 degrees of freedom is 4.302653; the standard error is 0.001 / √3.
  EXPECT_NEAR(*it.high - *it.log_ratio, 4.302653 * 0.001 / std::sqrt(3.0), 1e-8);
  EXPECT_DOUBLE_EQ(*it.seconds_a, 1e-3);
  EXPECT_NEAR(*it.seconds_b, 1e-3 * std::exp(0.1), 1e-12);
  EXPECT_LT(*it.p_value, 0.05);
}

TEST(Judgement, SaysWhatMakesItUnclear) {
  EXPECT_EQ(judge({}, std::nullopt).reason, "nothing was measured");
  EXPECT_EQ(judge(launches_of({0.2}), std::nullopt).reason, "one launch gives no interval");
  EXPECT_EQ(judge(launches_of({-0.1, 0.1, 0.0}), 0.01).reason, "the interval is wider than ±1 %");
  EXPECT_EQ(judge(launches_of({0.004, 0.012, 0.008}), 0.01).reason, "the interval reaches across +1 %");
  EXPECT_EQ(judge(launches_of({-0.004, -0.012, -0.008}), 0.01).reason, "the interval reaches across −1 %");
}

TEST(Judgement, TakesThreeLaunchesForAWord) {
  const Judgement two = judge(launches_of({0.5, 0.5000001}), 0.01);
  EXPECT_EQ(two.verdict, Verdict::unclear);
  EXPECT_EQ(two.reason, "2 launches a side; a verdict takes 3");
  EXPECT_EQ(judge(launches_of({0.5, 0.5000001, 0.5}), 0.01).verdict, Verdict::slower);
}

TEST(Judgement, OfStoredLaunchesNamesTheSideThatHasTooFew) {
  const std::vector<double> one{1e-3}, three{1e-3, 1.001e-3, 1.002e-3};
  const Judgement it = judge_stored(one, three, std::nullopt);
  EXPECT_EQ(it.verdict, Verdict::unclear);
  EXPECT_EQ(it.reason, "A has 1, B 3 launches; a verdict takes 3 of each");
  EXPECT_FALSE(it.p_value);
  EXPECT_EQ(judge_stored(three, three, 0.1).verdict, Verdict::same);
}

TEST(Judgement, DoublesDeltaWhereACallIsShorterThan20Microseconds) {
  const std::vector<double> short_calls{19e-6, 19.01e-6, 19.02e-6}, long_calls{21e-6, 21.01e-6, 21.02e-6};
  EXPECT_EQ(judge_stored(short_calls, short_calls, std::nullopt).delta, 0.02);
  EXPECT_EQ(judge_stored(long_calls, long_calls, std::nullopt).delta, 0.01);
}

TEST(Sweep, ACallThatChanceWouldMakeAmongSoManyBecomesUnclear) {
  std::vector<Judgement> twenty(20, with(Verdict::same, 1.0));
  twenty[3] = with(Verdict::slower, 0.04);
  twenty[7] = with(Verdict::faster, 0.0001);
  const std::vector<Judgement> after = corrected(twenty);
  EXPECT_EQ(after[3].verdict, Verdict::unclear);
  EXPECT_NE(after[3].reason.find("slower by itself, but among 20 comparisons q = 0.4"), std::string::npos);
  EXPECT_EQ(after[7].verdict, Verdict::faster);
  EXPECT_DOUBLE_EQ(*after[7].q_value, 0.002);
  EXPECT_EQ(after[7].tests, 20);
  EXPECT_EQ(corrected({with(Verdict::slower, 0.04)})[0].verdict, Verdict::slower) << "alone it stands";
}

TEST(Judgement, NamesTheSideThatHasNoTime) {
  EXPECT_EQ(sentence(incomparable("side B is wrong: out[3] is 7"), "reference", "me"),
            "reference and me cannot be compared: me is wrong: out[3] is 7.");
  EXPECT_EQ(by_name("side A is skipped: no GPU; side B is skipped: no GPU", "reference", "me"),
            "reference is skipped: no GPU; me is skipped: no GPU");
  EXPECT_EQ(by_name("interrupted after 3 launches", "reference", "me"), "interrupted after 3 launches");
}

TEST(Sweep, WhatWasNotMeasuredIsNoTest) {
  std::vector<Judgement> sweep(20, incomparable("side B is skipped"));
  sweep[0] = with(Verdict::slower, 0.04);
  const std::vector<Judgement> after = corrected(sweep);
  EXPECT_EQ(after[0].verdict, Verdict::slower);
  EXPECT_EQ(after[0].tests, 1);
  EXPECT_FALSE(after[1].q_value);
}

TEST(Judgement, LeadsToTheExitCodesThatAreDocumented) {
  EXPECT_EQ(exit_of(with(Verdict::faster, {}), false), Exit::well);
  EXPECT_EQ(exit_of(with(Verdict::same, {}), false), Exit::well);
  EXPECT_EQ(exit_of(with(Verdict::slower, {}), false), Exit::slower);
  EXPECT_EQ(exit_of(with(Verdict::unclear, {}), false), Exit::unclear);
  EXPECT_EQ(exit_of(incomparable("versions differ"), false), Exit::unclear);
  const auto failed = [](worker::Status status, bool oom_is_an_answer = false) {
    Judgement it = incomparable("side B failed");
    it.failed_b = status;
    return exit_of(it, oom_is_an_answer);
  };
  EXPECT_EQ(failed(worker::Status::check_failed), Exit::wrong);
  EXPECT_EQ(failed(worker::Status::crashed), Exit::incomplete);
  EXPECT_EQ(failed(worker::Status::timeout), Exit::incomplete);
  EXPECT_EQ(failed(worker::Status::oom), Exit::incomplete);
  EXPECT_EQ(failed(worker::Status::oom, true), Exit::well);
  EXPECT_EQ(failed(worker::Status::skipped), Exit::well);
  EXPECT_EQ(failed(worker::Status::unsupported), Exit::well);
}

TEST(Judgement, SaysWhyItsRatioAndItsTimesPointApart) {
  // The machine was slow while half of A was measured and while none of B was: each pair says that B takes longer.
  std::vector<runner::PairedBlock> blocks = launches_of({0.02, 0.02, 0.02});
  EXPECT_EQ(contradiction(judge(blocks, std::nullopt)), "");
  Judgement it = judge(blocks, std::nullopt);
  it.seconds_b = *it.seconds_a * 0.97;
  EXPECT_EQ(contradiction(it),
            "The two times beside it differ by −3.00 %, the ratio is +2.02 %: it is of neighbouring calls measured in "
            "turns, the times are medians of all calls.");
  it.seconds_b = *it.seconds_a * 0.9999999;
  EXPECT_TRUE(contradiction(it).starts_with("The two times beside it differ by ±0.00 %, the ratio is +2.02 %: "));
  it.log_ratio = it.low = it.high = 0.008;
  EXPECT_EQ(contradiction(it), "") << "as good as equal, and the ratio is less than what counts";
}

TEST(Judgement, SaysWhyItsRatioIsNotThatOfItsTimes) {
  // A process in three found the machine busy: its pair says the same, the median times come from different launches.
  Judgement it = judge(launches_of({0.80, 0.83, 0.86}), std::nullopt);
  it.seconds_a = 22.8e-3;
  it.seconds_b = 64.8e-3;
  EXPECT_TRUE(contradiction(it).starts_with("The two times beside it differ by +184 %, the ratio is +129 %: "))
      << contradiction(it);
  it.seconds_b = *it.seconds_a * std::exp(*it.high - 1e-6);
  EXPECT_EQ(contradiction(it), "") << "within the interval";
  it.high = 2.0;
  it.seconds_b = *it.seconds_a * std::exp(*it.log_ratio + 0.4);
  EXPECT_EQ(contradiction(it), "") << "within a wide interval";
  it.seconds_b = *it.seconds_a * std::exp(*it.log_ratio + 0.42);
  EXPECT_NE(contradiction(it), "") << "within a wide interval, and half as much again";
  it.low = it.high = it.log_ratio;
  it.seconds_b = *it.seconds_a * std::exp(*it.log_ratio + 0.009);
  EXPECT_EQ(contradiction(it), "") << "less than what counts";
}

// A claim says how many times as fast, and so does what is told while it is measured.
TEST(Judgement, OfAClaimIsASpeed) {
  const double faster = -std::log(1.83);
  EXPECT_EQ(speed_text(judge(launches_of({faster}), std::nullopt)), "1.830 times as fast (no interval)");
  Judgement it;
  EXPECT_EQ(speed_text(it), "");
  it.log_ratio = -std::log(2.5);
  it.low = -std::log(2.75);
  it.high = -std::log(2.25);
  EXPECT_EQ(speed_text(it), "2.50 times as fast (2.25 … 2.75)");
}

TEST(Judgement, IsASentenceOfTheSideNamedSecond) {
  EXPECT_EQ(sentence(judge(launches_of({-0.1, -0.1, -0.1}), std::nullopt), "naive", "tiled"),
            "tiled takes 9.52 % less time than naive (95 %: −9.52 % … −9.52 %), over 3 launches a side.");
  EXPECT_EQ(sentence(judge(launches_of({1.0, 1.0, 1.0}), std::nullopt), "naive", "tiled"),
            "tiled takes 172 % more time than naive (95 %: +172 % … +172 %), over 3 launches a side.");
  const double ninety_six = std::log(96.3);
  EXPECT_EQ(sentence(judge(launches_of({ninety_six, ninety_six, ninety_six}), std::nullopt), "tiled", "naive"),
            "naive takes 96.3 times as long as tiled (95 %: 96.3 … 96.3 times), over 3 launches a side.");
  EXPECT_EQ(sentence(judge(launches_of({-ninety_six, -ninety_six, -ninety_six}), std::nullopt), "naive", "tiled"),
            "tiled takes 1/96.3 of the time of naive (95 %: 1/96.3 … 1/96.3), over 3 launches a side.");
  EXPECT_EQ(change_text(std::log(3.01)), "3.01 times");
  EXPECT_EQ(change_text(std::log(2.99)), "+199 %");
  EXPECT_EQ(change_text(-std::log(400)), "1/400");
  EXPECT_EQ(percent(0.0), "±0.00 %");
  EXPECT_EQ(percent(-0.00001), "±0.00 %");
  EXPECT_EQ(percent(1.234), "+123 %");
}

}  // namespace
}  // namespace syslab::cli
