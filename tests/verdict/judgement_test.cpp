#include "verdict/judgement.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace syslab::verdict {
namespace {

using stats::Verdict;

// Launches of one block each, side A at 1 ms, with these log ratios.
Turns launches_of(const std::vector<double>& log_ratios) {
  Turns turns;
  for (const double log_ratio : log_ratios) {
    const double a = 1e-3, b = a * std::exp(log_ratio);
    turns.blocks.push_back({static_cast<int>(turns.blocks.size()), log_ratio});
    turns.calls[0].insert(turns.calls[0].end(), {a, a});
    turns.calls[1].insert(turns.calls[1].end(), {b, b});
  }
  return turns;
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
  const Judgement it = judge(launches_of({0.099, 0.1, 0.101}), std::nullopt, {});
  EXPECT_EQ(it.verdict, Verdict::slower);
  EXPECT_EQ(it.launches, 3);
  EXPECT_NEAR(*it.log_ratio, 0.1, 1e-12);
  // Student's t of 97.5 % with 2 degrees of freedom is 4.302653; the standard error is 0.001 / √3.
  EXPECT_NEAR(*it.high - *it.log_ratio, 4.302653 * 0.001 / std::sqrt(3.0), 1e-8);
  EXPECT_DOUBLE_EQ(*it.seconds_a, 1e-3);
  EXPECT_NEAR(*it.seconds_b, 1e-3 * std::exp(0.1), 1e-12);
  EXPECT_LT(*it.p_value, 0.05);
}

TEST(Judgement, TheTimesAreMediansOfAllCalls) {
  Turns turns = launches_of({0, 0, 0});
  turns.calls[1] = {2e-3, 3e-3, 4e-3, 5e-3, 1e-3, 1e-3, 1e-3, 1e-3};
  EXPECT_DOUBLE_EQ(*judge(turns, std::nullopt, {}).seconds_b, 1.5e-3);
}

TEST(Judgement, MeansThatDifferAreAValueBesideSame) {
  Turns turns = launches_of({0, 1e-5, 2e-5, 3e-5});
  Judgement it = judge(turns, std::nullopt, {});
  ASSERT_EQ(it.verdict, Verdict::same);
  EXPECT_FALSE(differing_means(it, turns));
  turns.calls[1][4] = 5e-3;  // one call of B of eight: the mean is 12 ms / 8
  EXPECT_NEAR(differing_means(it, turns).value_or(0), std::log(1.5), 1e-4);
  it.verdict = Verdict::unclear;
  EXPECT_FALSE(differing_means(it, turns));
}

TEST(Judgement, TakesThreeLaunchesForAWord) {
  const Judgement two = judge(launches_of({0.5, 0.5000001}), 0.01, {});
  EXPECT_EQ(two.verdict, Verdict::unclear);
  EXPECT_EQ(two.reason.cause, Cause::few_launches);
  EXPECT_EQ(judge(launches_of({0.5, 0.5000001, 0.5}), 0.01, {}).verdict, Verdict::slower);
}

TEST(Judgement, HasACauseWhereItIsUnclear) {
  const std::vector<double> one{1e-3}, three{1e-3, 1.001e-3, 1.002e-3};
  const std::vector<std::pair<Judgement, Cause>> table{
      {judge({}, std::nullopt, {}), Cause::nothing_measured},
      {judge(launches_of({0.2}), std::nullopt, {}), Cause::one_launch},
      {judge(launches_of({-0.1, 0.1, 0.0}), 0.01, {}), Cause::across_borders},
      {judge(launches_of({0.5, 0.5000001}), 0.01, {}), Cause::few_launches},
      {judge_stored(one, three, std::nullopt, {}), Cause::few_stored},
      {unclear(judge(launches_of({0.5, 0.5, 0.5}), 0.01, {}), {.cause = Cause::interrupted}), Cause::interrupted}};
  for (const auto& [it, cause] : table) {
    EXPECT_EQ(it.verdict, Verdict::unclear) << to_string(cause);
    EXPECT_EQ(it.reason.cause, cause) << to_string(it.reason.cause);
  }
  EXPECT_FALSE(table[4].first.p_value || table[5].first.p_value) << "no test of a change";
  EXPECT_EQ(judge(launches_of({0.5, 0.5000001, 0.5}), 0.01, {}).reason.cause, Cause::none);
}

TEST(Judgement, DoublesDeltaWhereACallIsShorterThan20Microseconds) {
  const std::vector<double> short_calls{19e-6, 19.01e-6, 19.02e-6}, long_calls{21e-6, 21.01e-6, 21.02e-6};
  EXPECT_EQ(judge_stored(short_calls, short_calls, std::nullopt, {}).delta, 0.02);
  EXPECT_EQ(judge_stored(long_calls, long_calls, std::nullopt, {}).delta, 0.01);
}

// A unit says nothing about how long anything took: B/s would be told apart less finely than GB/s.
TEST(Judgement, OfRatesDeltaIsTheSameInEveryUnit) {
  Turns turns = launches_of({0.015, 0.015, 0.0151});
  for (std::vector<double>& calls : turns.calls) {
    for (double& seconds : calls) seconds *= 1e-9;
  }
  EXPECT_EQ(judge(turns, std::nullopt, {}).delta, 0.02);
  EXPECT_EQ(judge(turns, std::nullopt, {"B/s", Better::larger}).delta, 0.01);
}

Judgement timed(Verdict verdict, double seconds_a, double seconds_b) {
  Judgement it = with(verdict, std::nullopt);
  it.seconds_a = seconds_a;
  it.seconds_b = seconds_b;
  return it;
}

TEST(Judgement, AForwardCallThatTakesAQuarterOfWhatIsGainedIsWarnedOf) {
  const Judgement faster = timed(Verdict::faster, 30e-3, 10e-3);
  const auto found = moved_forward(faster, {{{5e-3, 5e-3}, {25e-3, 25e-3}}}, "a", "b");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->code, stats::WarningCode::forward_untimed);
  EXPECT_EQ(found->side, "b");
  EXPECT_NEAR(found->number, 20e-3, 1e-12);
  EXPECT_FALSE(moved_forward(faster, {{{5e-3, 5e-3}, {9e-3, 9e-3}}}, "a", "b"));
  EXPECT_EQ(moved_forward(timed(Verdict::slower, 10e-3, 30e-3), {{{25e-3, 25e-3}, {5e-3, 5e-3}}}, "a", "b")->side, "a");
  EXPECT_FALSE(moved_forward(timed(Verdict::same, 30e-3, 30e-3), {{{5e-3, 5e-3}, {25e-3, 25e-3}}}, "a", "b"));
}

TEST(Judgement, NoiseOfForwardCallsAccusesNobody) {
  const Judgement faster = timed(Verdict::faster, 32e-3, 30e-3);  // a quarter of the gain is 0.5 ms
  const std::vector<double> noisy{95e-3, 104e-3, 99e-3, 102e-3, 97e-3}, other{101e-3, 98e-3, 103e-3, 100e-3, 96e-3};
  EXPECT_FALSE(moved_forward(faster, {{{noisy}, {other}}}, "a", "b"));
  EXPECT_FALSE(moved_forward(faster, {{{other}, {noisy}}}, "a", "b"));
  std::vector<double> moved = noisy;
  for (double& seconds : moved) seconds += 20e-3;
  EXPECT_TRUE(moved_forward(faster, {{{other}, {moved}}}, "a", "b"));
  EXPECT_FALSE(moved_forward(faster, {{{5e-3}, {25e-3}}}, "a", "b"));  // one launch
}

TEST(Judgement, ASleepInSomeForwardCallsExcusesNobody) {
  const Judgement faster = timed(Verdict::faster, 100e-3, 40e-3);
  const std::vector<double> honest{1e-3, 1.2e-3, 1.1e-3};
  const auto found = moved_forward(faster, {{{honest}, {71e-3, 770e-3, 69e-3}}}, "a", "b");
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->number, (70e-3 + 768.8e-3 + 67.9e-3) / 3, 1e-12) << "with its sleep";
  EXPECT_FALSE(moved_forward(faster, {{{honest}, {1e-3, 700e-3, 1e-3}}}, "a", "b")) << "a delay alone gains nothing";
}

// What both sides of a launch share, a busy machine say, is in neither's difference.
TEST(Judgement, ForwardCallsAreComparedLaunchByLaunch) {
  const Judgement faster = timed(Verdict::faster, 32e-3, 30e-3);
  EXPECT_TRUE(moved_forward(faster, {{{50e-3, 100e-3, 80e-3}, {52e-3, 102e-3, 82e-3}}}, "a", "b"));
}

TEST(Judgement, WhereTheOtherSidesForwardCallIsNotKnownItMayTakeAsLongAsThePass) {
  const Judgement faster = timed(Verdict::faster, 30e-3, 10e-3);
  EXPECT_FALSE(moved_forward(faster, {{{}, {9e-3, 9e-3}}}, "a", "b"));
  EXPECT_TRUE(moved_forward(faster, {{{}, {11e-3, 11e-3}}}, "a", "b"));
  EXPECT_FALSE(moved_forward(faster, {{{}, {}}}, "a", "b"));
}

TEST(Sweep, ACallThatChanceWouldMakeAmongSoManyBecomesUnclear) {
  std::vector<Judgement> twenty(20, with(Verdict::same, 1.0));
  twenty[3] = with(Verdict::slower, 0.04);
  twenty[7] = with(Verdict::faster, 0.0001);
  const std::vector<Judgement> after = corrected(twenty);
  EXPECT_EQ(after[3].verdict, Verdict::unclear);
  EXPECT_EQ(after[3].reason.cause, Cause::one_of_many);
  EXPECT_EQ(after[3].reason.other, Verdict::slower);
  EXPECT_EQ(after[7].verdict, Verdict::faster);
  EXPECT_DOUBLE_EQ(*after[7].q_value, 0.002);
  EXPECT_EQ(after[7].tests, 20);
  EXPECT_EQ(corrected({with(Verdict::slower, 0.04)})[0].verdict, Verdict::slower) << "alone it stands";
}

TEST(Sweep, WhatWasNotMeasuredIsNoTest) {
  std::vector<Judgement> sweep(20, incomparable("side B is skipped"));
  sweep[0] = with(Verdict::slower, 0.04);
  const std::vector<Judgement> after = corrected(sweep);
  EXPECT_EQ(after[0].verdict, Verdict::slower);
  EXPECT_EQ(after[0].tests, 1);
  EXPECT_FALSE(after[1].q_value);
}

TEST(Judgement, SlowerOnceIsUnclear) {
  Judgement first = with(Verdict::slower, 0.001);
  first.log_ratio = 0.2;
  EXPECT_EQ(confirmed(first, with(Verdict::slower, 0.001)).verdict, Verdict::slower);
  const Judgement once = confirmed(first, with(Verdict::same, 0.9));
  EXPECT_EQ(once.verdict, Verdict::unclear);
  EXPECT_EQ(once.reason.cause, Cause::slower_once);
  EXPECT_EQ(once.reason.other, Verdict::same);
  EXPECT_EQ(once.reason.log_ratio, 0.2);
  Judgement wrong = incomparable("wrong");
  wrong.failed_b = Status::check_failed;
  EXPECT_EQ(confirmed(first, wrong).verdict, Verdict::incomparable) << "a wrong side stays wrong";
  EXPECT_EQ(not_confirmed(first).reason.cause, Cause::not_confirmed);
}

TEST(Judgement, TimesThatContradictTheRatioAreAValue) {
  Judgement it = judge(launches_of({0.02, 0.02, 0.02}), std::nullopt, {});
  EXPECT_FALSE(contradicting_times(it));
  it.seconds_b = *it.seconds_a * 0.97;
  EXPECT_NEAR(contradicting_times(it).value_or(0), std::log(0.97), 1e-12);
  it.log_ratio = it.low = it.high = 0.008;
  it.seconds_b = *it.seconds_a * 0.9999999;
  EXPECT_FALSE(contradicting_times(it)) << "as good as equal, and the ratio is less than what counts";
}

TEST(Judgement, LeadsToTheExitCodesThatAreDocumented) {
  EXPECT_EQ(exit_of(with(Verdict::faster, {}), false), Exit::well);
  EXPECT_EQ(exit_of(with(Verdict::same, {}), false), Exit::well);
  EXPECT_EQ(exit_of(with(Verdict::slower, {}), false), Exit::slower);
  EXPECT_EQ(exit_of(with(Verdict::unclear, {}), false), Exit::unclear);
  EXPECT_EQ(exit_of(incomparable("versions differ"), false), Exit::unclear);
  const auto failed = [](Status status, bool oom_is_an_answer = false) {
    Judgement it = incomparable("side B failed");
    it.failed_b = status;
    return exit_of(it, oom_is_an_answer);
  };
  EXPECT_EQ(failed(Status::check_failed), Exit::wrong);
  EXPECT_EQ(failed(Status::crashed), Exit::incomplete);
  EXPECT_EQ(failed(Status::timeout), Exit::incomplete);
  EXPECT_EQ(failed(Status::oom), Exit::incomplete);
  EXPECT_EQ(failed(Status::oom, true), Exit::well);
  EXPECT_EQ(failed(Status::skipped), Exit::well);
  EXPECT_EQ(failed(Status::unsupported), Exit::well);
}

}  // namespace
}  // namespace syslab::verdict
