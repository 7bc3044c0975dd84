#include "compare/judgement.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compare/verdict_table.hpp"

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

// Side B is slow in one launch and fast in the others: the median is of calls, not of launches.
TEST(Judgement, TheTimesAreMediansOfAllCalls) {
  std::vector<runner::PairedBlock> blocks = launches_of({0, 0, 0});
  blocks[0].seconds = {1e-3, 2e-3, 3e-3, 1e-3};  // ABBA: of side B 2 and 3 ms
  blocks.push_back({0, 1, "ABBA", {1e-3, 4e-3, 5e-3, 1e-3}, 0});
  // All calls of B: 2, 3, 4, 5, 1, 1, 1, 1 ms. Of the launches' medians the median would be 1 ms.
  EXPECT_DOUBLE_EQ(*judge(blocks, std::nullopt).seconds_b, 1.5e-3);
}

TEST(Judgement, MeansThatDifferAreToldBesideSame) {
  std::vector<runner::PairedBlock> blocks = launches_of({0, 0, 0, 0});
  for (runner::PairedBlock& block : blocks) block.log_ratio = 1e-5 * block.launch;
  Judgement it = judge(blocks, std::nullopt);
  ASSERT_EQ(it.verdict, Verdict::same);
  EXPECT_EQ(differing_means(it, blocks), "");
  blocks[2].seconds[1] = 5e-3;  // one call of B of eight: the mean is 12 ms / 8
  EXPECT_NE(differing_means(it, blocks).find("differ by +50.0 %"), std::string::npos) << differing_means(it, blocks);
  it.verdict = Verdict::unclear;
  EXPECT_EQ(differing_means(it, blocks), "");
}

TEST(Judgement, UnderTheResolutionHasACodeNoNumbersAndAnExitCodeOfItsOwn) {
  const NoTime why{stats::TimingReason::under_resolution, 77e-6, 64e-6, 64e-6};
  const Judgement it = under_resolution('B', why);
  EXPECT_EQ(it.verdict, Verdict::incomparable);
  EXPECT_EQ(it.code, stats::TimingReason::under_resolution);
  EXPECT_FALSE(it.seconds_a || it.seconds_b || it.log_ratio || it.low);
  EXPECT_EQ(exit_of(it, false), Exit::unclear);
  EXPECT_NE(sentence(it, "a", "me").find("me is too short to time: handing over a call takes up to 64"),
            std::string::npos)
      << sentence(it, "a", "me");
  EXPECT_NE(
      sentence(it, "a", "me").find("and a call with it 77.0 us; expected at most a tenth; try: more work in a call"),
      std::string::npos)
      << sentence(it, "a", "me");
  const NoTime copied{stats::TimingReason::under_resolution, 77e-6, 5e-6, 64e-6};
  EXPECT_NE(in_words(copied).find("expected at most a tenth for the hand-over, and half with the copying; try: more"),
            std::string::npos)
      << in_words(copied);
}

TEST(Judgement, ALongCallOnABusyMachineIsNotTooShort) {
  NoTime why{stats::TimingReason::under_resolution, 65.5e-3, 24e-3, 72.2e-3};
  EXPECT_FALSE(was_busy(why)) << "an older build does not tell the shortest";
  why.least = 10e-6, why.least_with_results = 40e-6, why.launch = 3;
  EXPECT_EQ(sentence(under_resolution('A', why), "a", "me").find("too short"), std::string::npos);
  EXPECT_NE(
      under_resolution('A', why).reason.find(
          "side A has no time: the machine was busy: in launch 3 handing over a call and copying its results took "
          "up to 72.2 ms, and 40.0 us at the least; expected at most a tenth of the 65.5 ms measured for the "
          "hand-over, and half with the copying; try: a quiet machine, or more work in a call"),
      std::string::npos)
      << under_resolution('A', why).reason;
  EXPECT_EQ(under_resolution('A', why).code, stats::TimingReason::under_resolution);
  why.least = 7e-3;
  EXPECT_FALSE(was_busy(why)) << "a tenth of the call even at the shortest";
  why.least = 5e-3, why.with_results = 0, why.least_with_results = 0;
  EXPECT_FALSE(was_busy(why)) << "it hardly scatters";
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

TEST(Judgement, SaysWhatMakesItUnclear) {
  EXPECT_EQ(judge({}, std::nullopt).reason, "nothing was measured");
  EXPECT_EQ(judge(launches_of({0.2}), std::nullopt).reason, "one launch gives no interval");
  EXPECT_EQ(judge(launches_of({-0.1, 0.1, 0.0}), 0.01).reason,
            "the interval reaches across both −0.99 % (1/1.01) and +1 %");
  EXPECT_EQ(judge(launches_of({0.004, 0.012, 0.008}), 0.01).reason, "the interval reaches across +1 %");
  EXPECT_EQ(judge(launches_of({-0.004, -0.012, -0.008}), 0.01).reason, "the interval reaches across −0.99 % (1/1.01)");
  EXPECT_EQ(judge(launches_of({-0.40, -0.42, -0.38}), 0.5).reason, "the interval reaches across −33.3 % (1/1.5)");
}

TEST(Judgement, OfRatesSaysWhatMakesItUnclearInRates) {
  const Quantity rate{"GB/s", Better::larger};
  const Judgement it = judge(launches_of({-0.004, -0.012, -0.008}), 0.01, rate);
  EXPECT_EQ(it.verdict, Verdict::unclear);
  EXPECT_TRUE(interval_text(it).starts_with("−")) << interval_text(it);
  EXPECT_EQ(it.reason, "the interval reaches across +1 %") << "fewer seconds are more GB/s";
}

// "same within ±1 %" with an end at "+1.00 %" that lies beyond, or "slower" from "+1.00 %" on, would not be true.
TEST(Judgement, AnIntervalComparesWithDeltaAsPrinted) {
  Judgement it;
  it.delta = 0.01;
  it.log_ratio = std::log(1.02);
  it.low = std::log(1.01004);
  it.high = std::log(1.03);
  EXPECT_EQ(interval_text(it), "+1.004 % … +3.00 %");
  it.low = std::log(1.00996);
  EXPECT_EQ(interval_text(it), "+0.996 % … +3.00 %");
  it.low = -std::log(1.010001);
  EXPECT_EQ(interval_text(it), "−0.9902 % … +3.00 %") << "below −0.990099 %";
  it.delta = 3;  // a factor of four
  it.log_ratio = std::log(3.9);
  it.low = std::log(3.8);
  it.high = std::log(4.002);
  EXPECT_EQ(interval_text(it), "3.80 … 4.002 times");
  EXPECT_EQ(change_text(std::log(1.5003), 0.5), "+50.03 %");
  EXPECT_EQ(change_text(std::log(1.4), 0.5), "+40.0 %");
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

TEST(Judgement, OfStoredLaunchesTellsHowManyEachSideHas) {
  const std::vector<double> three{1e-3, 1.001e-3, 1.002e-3}, five{2e-3, 2.001e-3, 2.002e-3, 2.001e-3, 2.002e-3};
  const Judgement it = judge_stored(three, five, std::nullopt);
  EXPECT_EQ(launches_text(it), "3, 5");
  EXPECT_TRUE(sentence(it, kPinnedSide, kNowSide).ends_with(", over 3 launches of the pin and 5 now."));
  EXPECT_TRUE(sentence(it, "A", "B").ends_with(", over 3 launches of A and 5 of B."));
  const Judgement rates = judge_stored(three, five, std::nullopt, {"GB/s", Better::larger});
  EXPECT_TRUE(sentence(rates, kPinnedSide, kNowSide).ends_with(", over 3 launches of the pin and 5 now."));
  const Judgement equal = judge_stored(three, three, std::nullopt);
  EXPECT_EQ(launches_text(equal), "3");
  EXPECT_TRUE(sentence(equal, kPinnedSide, kNowSide).ends_with(", over 3 launches a side."));
}

TEST(Judgement, DoublesDeltaWhereACallIsShorterThan20Microseconds) {
  const std::vector<double> short_calls{19e-6, 19.01e-6, 19.02e-6}, long_calls{21e-6, 21.01e-6, 21.02e-6};
  EXPECT_EQ(judge_stored(short_calls, short_calls, std::nullopt).delta, 0.02);
  EXPECT_EQ(judge_stored(long_calls, long_calls, std::nullopt).delta, 0.01);
}

// The ratio of times is −0.1: B does more a second.
TEST(Judgement, OfRatesTheLargerIsFasterAndIsSaid) {
  const Quantity rate{"TFLOP/s", Better::larger};
  const Judgement it = judge(launches_of({-0.099, -0.1, -0.101}), std::nullopt, rate);
  EXPECT_EQ(it.verdict, Verdict::faster);
  EXPECT_EQ(change_text(it), "+10.5 %");
  EXPECT_EQ(interval_text(it), "+10.2 % … +10.8 %");
  EXPECT_EQ(sentence(it, "old", "new"),
            "new has 10.5 % more TFLOP/s than old (95 %: +10.2 % … +10.8 %), over 3 launches a side.");
  EXPECT_EQ(judge(launches_of({0.099, 0.1, 0.101}), std::nullopt, rate).verdict, Verdict::slower);
  const Judgement same = judge(launches_of({0.0001, 0.0002, 0.0003}), std::nullopt, rate);
  EXPECT_TRUE(sentence(same, "old", "new").starts_with("old and new have the same TFLOP/s within ±1 %: −0.02"));
  EXPECT_EQ(change_text(judge(launches_of({-2.1, -2.1, -2.1}), std::nullopt, rate)), "8.17 times");
}

TEST(ChangeInWords, IsOfWhatPeopleRead) {
  const Quantity rate{"tokens/s", Better::larger};
  EXPECT_EQ(change_in_words({}, std::log(1.023)), "2.30 % more time");
  EXPECT_EQ(change_in_words({}, std::log(2.0 / 3)), "33.3 % less time");
  EXPECT_EQ(change_in_words({}, std::log(9.53)), "9.53 times the time");
  EXPECT_EQ(change_in_words({}, -std::log(9.53)), "1/9.53 of the time");
  EXPECT_EQ(change_in_words(rate, std::log(2.0 / 3)), "50.0 % more tokens/s") << "the time of a token is two thirds";
  EXPECT_EQ(change_in_words(rate, std::log(1.25)), "20.0 % less tokens/s");
  EXPECT_EQ(change_in_words(rate, -std::log(1e10)), "10000000000 times the tokens/s");
  EXPECT_EQ(change_in_words(rate, std::log(1e10)), "1/10000000000 of the tokens/s");
}

// A unit says nothing about how long anything took: B/s would be told apart less finely than GB/s.
TEST(Judgement, OfRatesDeltaIsTheSameInEveryUnit) {
  std::vector<runner::PairedBlock> blocks = launches_of({0.015, 0.015, 0.0151});
  for (runner::PairedBlock& block : blocks) {
    for (double& seconds : block.seconds) seconds *= 1e-9;
  }
  EXPECT_EQ(judge(blocks, std::nullopt).delta, 0.02);
  EXPECT_EQ(judge(blocks, std::nullopt, {"B/s", Better::larger}).delta, 0.01);
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
  const Judgement wrong = incomparable({AboutSide{'B', "is wrong: side A is out[3]", "side A is out[3]"}});
  EXPECT_EQ(wrong.reason, "side B is wrong: side A is out[3]");
  EXPECT_EQ(sentence(wrong, "reference", "me"), "reference and me cannot be compared: me is wrong: side A is out[3].");
  EXPECT_EQ(to_json(wrong).at("about_b"), "is wrong: side A is out[3]");
  EXPECT_EQ(to_json(wrong).at("detail_b"), "side A is out[3]");
  EXPECT_EQ(reason_by_name(incomparable({AboutSide{'A', "is skipped: no GPU"}, AboutSide{'B', "is skipped: no GPU"}}),
                           "reference", "me"),
            "reference is skipped: no GPU; me is skipped: no GPU");
  EXPECT_EQ(reason_by_name(incomparable("side A is late"), "reference", "me"), "side A is late") << "no side's own";
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

TEST(Judgement, SaysWhyItsRatioAndItsTimesPointApart) {
  // The machine was slow while half of A was measured and while none of B was: each pair says that B takes longer.
  std::vector<runner::PairedBlock> blocks = launches_of({0.02, 0.02, 0.02});
  EXPECT_EQ(contradiction(judge(blocks, std::nullopt)), "");
  Judgement it = judge(blocks, std::nullopt);
  it.seconds_b = *it.seconds_a * 0.97;
  EXPECT_EQ(contradiction(it),
            "The two times differ by −3.00 %, but the ratio is +2.02 %: the ratio is of neighbouring calls measured in "
            "turns, the times are medians of all calls.");
  it.seconds_b = *it.seconds_a * 0.9999999;
  EXPECT_TRUE(contradiction(it).starts_with("The two times differ by ±0.00 %, but the ratio is +2.02 %: "));
  it.log_ratio = it.low = it.high = 0.008;
  EXPECT_EQ(contradiction(it), "") << "as good as equal, and the ratio is less than what counts";
}

TEST(Judgement, SaysWhyItsRatioIsNotThatOfItsTimes) {
  // A process in three found the machine busy: its pair says the same, the median times come from different launches.
  Judgement it = judge(launches_of({0.80, 0.83, 0.86}), std::nullopt);
  it.seconds_a = 22.8e-3;
  it.seconds_b = 64.8e-3;
  EXPECT_TRUE(contradiction(it).starts_with("The two times differ by +184 %, but the ratio is +129 %: "))
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
