#include "words/comparison_words.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace syslab::words {
namespace {

using stats::Verdict;
using verdict::AboutSide;
using verdict::Cause;
using verdict::judge;
using verdict::judge_stored;
using verdict::Judgement;

// Launches of one block each, side A at 1 ms, with these log ratios.
verdict::Turns launches_of(const std::vector<double>& log_ratios) {
  verdict::Turns turns;
  for (const double log_ratio : log_ratios) {
    const double a = 1e-3, b = a * std::exp(log_ratio);
    turns.blocks.push_back({static_cast<int>(turns.blocks.size()), log_ratio});
    turns.calls[0].insert(turns.calls[0].end(), {a, a});
    turns.calls[1].insert(turns.calls[1].end(), {b, b});
  }
  return turns;
}

TEST(Comparison, SaysWhatMakesItUnclear) {
  EXPECT_EQ(reason(judge({}, std::nullopt, {})), "nothing was measured");
  EXPECT_EQ(reason(judge(launches_of({0.2}), std::nullopt, {})), "one launch gives no interval");
  EXPECT_EQ(reason(judge(launches_of({-0.1, 0.1, 0.0}), 0.01, {})),
            "the interval reaches across both −0.99 % (1/1.01) and +1 %");
  EXPECT_EQ(reason(judge(launches_of({0.004, 0.012, 0.008}), 0.01, {})), "the interval reaches across +1 %");
  EXPECT_EQ(reason(judge(launches_of({-0.004, -0.012, -0.008}), 0.01, {})),
            "the interval reaches across −0.99 % (1/1.01)");
  EXPECT_EQ(reason(judge(launches_of({-0.40, -0.42, -0.38}), 0.5, {})), "the interval reaches across −33.3 % (1/1.5)");
}

TEST(Comparison, OfRatesSaysWhatMakesItUnclearInRates) {
  const Quantity rate{"GB/s", Better::larger};
  const Judgement it = judge(launches_of({-0.004, -0.012, -0.008}), 0.01, rate);
  EXPECT_EQ(it.verdict, Verdict::unclear);
  EXPECT_TRUE(interval_text(it).starts_with("−")) << interval_text(it);
  EXPECT_EQ(reason(it), "the interval reaches across +1 %") << "fewer seconds are more GB/s";
}

// "same within ±1 %" with an end at "+1.00 %" that lies beyond, or "slower" from "+1.00 %" on, would not be true.
TEST(Comparison, AnIntervalComparesWithDeltaAsPrinted) {
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

TEST(Comparison, SaysWhyItHasNoVerdict) {
  const std::vector<double> one{1e-3}, three{1e-3, 1.001e-3, 1.002e-3};
  EXPECT_EQ(reason(judge(launches_of({0.5, 0.5000001}), 0.01, {})), "2 launches a side; a verdict takes 3");
  EXPECT_EQ(reason(judge_stored(one, three, std::nullopt, {})), "A has 1, B 3 launches; a verdict takes 3 of each");
  const Judgement three_of_them = judge(launches_of({0.1, 0.1, 0.1}), 0.01, {});
  const auto told = [&](verdict::Reason why) { return reason(verdict::unclear(three_of_them, std::move(why))); };
  EXPECT_EQ(told({.cause = Cause::interrupted}), "interrupted after 3 launches");
  EXPECT_EQ(told({.cause = Cause::out_of_time}), "--budget ended it after 3 launches; a verdict takes 3");
  for (const auto& [seconds, text] : {std::pair{2.0, "2.00 s; a verdict takes 3, so more than 6.00 s"},
                                      std::pair{0.0, "0 ns; a verdict takes 3, so more than 0 ns"}}) {
    const Judgement cut = verdict::unclear({}, {.cause = Cause::out_of_time, .seconds = seconds});
    EXPECT_EQ(reason(cut), std::string("--budget ended its first launch after ") + text);
  }
  EXPECT_EQ(told({.cause = Cause::same_code, .other = Verdict::slower, .text = "abc"}),
            "both sides are the same machine code (abc): slower of +10.5 % … +10.5 % is noise of this machine");
  EXPECT_EQ(told({.cause = Cause::slower_once, .other = Verdict::same, .log_ratio = std::log(1.25)}),
            "slower at first (+25.0 %), same when measured again");
  EXPECT_EQ(told({.cause = Cause::not_confirmed, .log_ratio = std::log(1.25)}),
            "slower at first (+25.0 %), interrupted before it was measured again");
  EXPECT_EQ(told({.cause = Cause::no_stored_time}), "the pinned run holds no checked time of it; not measured");
  Judgement many = verdict::unclear(three_of_them, {.cause = Cause::one_of_many, .other = Verdict::slower});
  many.q_value = 0.4;
  many.tests = 20;
  EXPECT_EQ(reason(many), "slower by itself, but among 20 comparisons q = 0.40 is above 0.05");
  EXPECT_EQ(reason(verdict::incomparable({.cause = Cause::interrupted})), "interrupted");
  many.note = "a note";
  EXPECT_EQ(reason_or_note(many), reason(many));
  many.reason = {};
  EXPECT_EQ(reason_or_note(many), "a note");
}

TEST(Comparison, TellsOfMeansThatDiffer) {
  EXPECT_TRUE(about_means({}, std::log(1.5)).starts_with("The means of all calls differ by +50.0 %; "));
  const std::string of_rates = about_means({"GB/s", Better::larger}, std::log(1.5));
  EXPECT_TRUE(of_rates.starts_with("The means of all calls differ by −33.3 %; ")) << of_rates;
}

TEST(Comparison, OfStoredLaunchesTellsHowManyEachSideHas) {
  const std::vector<double> three{1e-3, 1.001e-3, 1.002e-3}, five{2e-3, 2.001e-3, 2.002e-3, 2.001e-3, 2.002e-3};
  const Judgement it = judge_stored(three, five, std::nullopt, {});
  EXPECT_EQ(launches_text(it), "3, 5");
  EXPECT_TRUE(sentence(it, kPinnedSide, kNowSide).ends_with(", over 3 launches of the pin and 5 now."));
  EXPECT_TRUE(sentence(it, "A", "B").ends_with(", over 3 launches of A and 5 of B."));
  const Judgement rates = judge_stored(three, five, std::nullopt, {"GB/s", Better::larger});
  EXPECT_TRUE(sentence(rates, kPinnedSide, kNowSide).ends_with(", over 3 launches of the pin and 5 now."));
  const Judgement equal = judge_stored(three, three, std::nullopt, {});
  EXPECT_EQ(launches_text(equal), "3");
  EXPECT_TRUE(sentence(equal, kPinnedSide, kNowSide).ends_with(", over 3 launches a side."));
}

// The ratio of times is −0.1: B does more a second.
TEST(Comparison, OfRatesTheLargerIsFasterAndIsSaid) {
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

TEST(Comparison, NamesTheSideThatHasNoTime) {
  const Judgement wrong = verdict::incomparable({AboutSide{'B', "is wrong: side A is out[3]", "side A is out[3]"}});
  EXPECT_EQ(reason(wrong), "side B is wrong: side A is out[3]");
  EXPECT_EQ(sentence(wrong, "reference", "me"), "reference and me cannot be compared: me is wrong: side A is out[3].");
  EXPECT_EQ(to_json(wrong).at("about_b"), "is wrong: side A is out[3]");
  EXPECT_EQ(to_json(wrong).at("detail_b"), "side A is out[3]");
  EXPECT_EQ(reason(verdict::incomparable({AboutSide{'A', "is skipped: no GPU"}, AboutSide{'B', "is skipped: no GPU"}}),
                   "reference", "me"),
            "reference is skipped: no GPU; me is skipped: no GPU");
  EXPECT_EQ(reason(verdict::incomparable("side A is late"), "reference", "me"), "side A is late") << "no side's own";
}

TEST(Comparison, SaysWhyItsRatioAndItsTimesPointApart) {
  // The machine was slow while half of A was measured and while none of B was: each pair says that B takes longer.
  const verdict::Turns blocks = launches_of({0.02, 0.02, 0.02});
  EXPECT_EQ(contradiction(judge(blocks, std::nullopt, {})), "");
  Judgement it = judge(blocks, std::nullopt, {});
  it.seconds_b = *it.seconds_a * 0.97;
  EXPECT_EQ(contradiction(it),
            "The two times differ by −3.00 %, but the ratio is +2.02 %: the ratio is of neighbouring calls measured in "
            "turns, the times are medians of all calls.");
  it.seconds_b = *it.seconds_a * 0.9999999;
  EXPECT_TRUE(contradiction(it).starts_with("The two times differ by ±0.00 %, but the ratio is +2.02 %: "));
  it.log_ratio = it.low = it.high = 0.008;
  EXPECT_EQ(contradiction(it), "") << "as good as equal, and the ratio is less than what counts";
}

TEST(Comparison, SaysWhyItsRatioIsNotThatOfItsTimes) {
  // A process in three found the machine busy: its pair says the same, the median times come from different launches.
  Judgement it = judge(launches_of({0.80, 0.83, 0.86}), std::nullopt, {});
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
TEST(Comparison, OfAClaimIsASpeed) {
  const double faster = -std::log(1.83);
  EXPECT_EQ(speed_text(judge(launches_of({faster}), std::nullopt, {})), "1.830 times as fast (no interval)");
  Judgement it;
  EXPECT_EQ(speed_text(it), "");
  it.log_ratio = -std::log(2.5);
  it.low = -std::log(2.75);
  it.high = -std::log(2.25);
  EXPECT_EQ(speed_text(it), "2.50 times as fast (2.25 … 2.75)");
}

TEST(Comparison, IsASentenceOfTheSideNamedSecond) {
  EXPECT_EQ(sentence(judge(launches_of({-0.1, -0.1, -0.1}), std::nullopt, {}), "naive", "tiled"),
            "tiled takes 9.52 % less time than naive (95 %: −9.52 % … −9.52 %), over 3 launches a side.");
  EXPECT_EQ(sentence(judge(launches_of({1.0, 1.0, 1.0}), std::nullopt, {}), "naive", "tiled"),
            "tiled takes 172 % more time than naive (95 %: +172 % … +172 %), over 3 launches a side.");
  const double ninety_six = std::log(96.3);
  EXPECT_EQ(sentence(judge(launches_of({ninety_six, ninety_six, ninety_six}), std::nullopt, {}), "tiled", "naive"),
            "naive takes 96.3 times as long as tiled (95 %: 96.3 … 96.3 times), over 3 launches a side.");
  EXPECT_EQ(sentence(judge(launches_of({-ninety_six, -ninety_six, -ninety_six}), std::nullopt, {}), "naive", "tiled"),
            "tiled takes 1/96.3 of the time of naive (95 %: 1/96.3 … 1/96.3), over 3 launches a side.");
  EXPECT_EQ(change_text(std::log(3.01)), "3.01 times");
  EXPECT_EQ(change_text(std::log(2.99)), "+199 %");
  EXPECT_EQ(change_text(-std::log(400)), "1/400");
  EXPECT_EQ(percent(0.0), "±0.00 %");
  EXPECT_EQ(percent(-0.00001), "±0.00 %");
  EXPECT_EQ(percent(1.234), "+123 %");
}

}  // namespace
}  // namespace syslab::words
