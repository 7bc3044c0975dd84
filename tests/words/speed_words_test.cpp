#include "words/speed_words.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/text/format_factor.hpp"

namespace syslab::words {
namespace {

using verdict::MeasuredSpeed;
using verdict::Quantifier;
using verdict::SpeedBorder;
using verdict::SpeedCause;
using verdict::SpeedFinding;
using verdict::SpeedVerdict;

// Launches of one block each, in which the hero is so many times as fast.
MeasuredSpeed case_of(const std::string& title, const std::vector<double>& speeds) {
  MeasuredSpeed measured{title, {}, {}, false};
  for (const double speed : speeds) {
    measured.blocks.push_back({static_cast<int>(measured.blocks.size()), -std::log(speed)});
  }
  return measured;
}

SpeedBorder at_least(double factor, double tolerance = 0) { return {factor, Quantifier::every_case, tolerance}; }
SpeedBorder on_average(double factor) { return {factor, Quantifier::geometric_mean, 0}; }

SpeedVerdict verdict_of(const SpeedBorder& border, const std::vector<MeasuredSpeed>& measured) {
  return judge(border, measured).verdict;
}

std::string reason_of(const SpeedBorder& border, const std::vector<MeasuredSpeed>& measured) {
  return reason(judge(border, measured), measured, border);
}

TEST(SpeedFinding, OfOneCaseIsWhereItsIntervalLies) {
  const std::vector<MeasuredSpeed> one{case_of("c", {1.19, 1.20, 1.21})};
  EXPECT_EQ(verdict_of(at_least(1.1), one), SpeedVerdict::confirmed);
  EXPECT_EQ(verdict_of(at_least(1.2), one), SpeedVerdict::unclear);
  EXPECT_EQ(verdict_of(at_least(1.3), one), SpeedVerdict::refuted);
  const SpeedFinding finding = judge(at_least(1.1), one);
  ASSERT_TRUE(finding.cases.front());
  EXPECT_NEAR(finding.cases.front()->factor, 1.2, 1e-3);
  // Student's t of two degrees of freedom: 4.303 standard errors of log speed.
  EXPECT_NEAR(finding.cases.front()->low, 1.2 * std::exp(-4.3027 * 0.008334 / std::sqrt(3.0)), 1e-4);
}

TEST(SpeedFinding, ToleranceTakesALittleLess) {
  const std::vector<MeasuredSpeed> one{case_of("c", {1.0945, 1.0950, 1.0955})};
  EXPECT_EQ(verdict_of(at_least(1.1), one), SpeedVerdict::refuted);
  EXPECT_EQ(verdict_of(at_least(1.1, 0.01), one), SpeedVerdict::confirmed);
  // A claim of 3 % more than is true is refuted all the same.
  EXPECT_EQ(verdict_of(at_least(1.03, 0.01), {case_of("c", {0.999, 1.0, 1.001})}), SpeedVerdict::refuted);
}

TEST(SpeedFinding, TheBorderIsTheFactorLessTheTolerance) {
  EXPECT_DOUBLE_EQ(std::exp(at_least(1.1, 0.01).log()), 1.089);
  EXPECT_DOUBLE_EQ(std::exp(at_least(1.5, 0.4).log()), 0.9);
  EXPECT_EQ(border_text(at_least(2, 0.4)), "1.200, 40 % less than claimed");
  const std::vector<MeasuredSpeed> one{case_of("c", {1.25, 1.25, 1.25})};
  EXPECT_EQ(verdict_of(at_least(2, 0.4), one), SpeedVerdict::confirmed) << "37.5 % less";
  EXPECT_EQ(verdict_of(at_least(2, 0.37), one), SpeedVerdict::refuted);
}

TEST(SpeedFinding, EqualityDoesNotTurnOnRounding) {
  for (const double scale : {1.0, 1e3, 1e-3, 7.0, 3e11}) {
    const double speed = 1 / (100 * scale) / (1 / (150 * scale));
    const std::vector<MeasuredSpeed> one{case_of("c", {speed, speed, speed})};
    EXPECT_EQ(verdict_of(at_least(1.5), one), SpeedVerdict::confirmed) << scale;
    EXPECT_EQ(claimable_text(judge(at_least(1.6), one).confirmable), "1.5") << scale;
  }
  const double less = 1.5 * (1 - 1e-8);
  EXPECT_EQ(verdict_of(at_least(1.5), {case_of("c", {less, less, less})}), SpeedVerdict::refuted);
}

TEST(SpeedFinding, EveryCaseMustHoldAndOneRefutes) {
  const std::vector<MeasuredSpeed> good{case_of("a", {1.19, 1.20, 1.21}), case_of("b", {1.39, 1.40, 1.41})};
  EXPECT_EQ(verdict_of(at_least(1.1), good), SpeedVerdict::confirmed);
  std::vector<MeasuredSpeed> bad = good;
  bad.push_back(case_of("slow one", {0.999, 1.0, 1.001}));
  const SpeedFinding finding = judge(at_least(1.1), bad);
  EXPECT_EQ(finding.verdict, SpeedVerdict::refuted);
  EXPECT_EQ(finding.cause, SpeedCause::case_below);
  EXPECT_EQ(finding.about, 2);
  EXPECT_NE(reason_of(at_least(1.1), bad).find("slow one"), std::string::npos);
  EXPECT_EQ(verdict_of(on_average(1.1), bad), SpeedVerdict::confirmed);
  EXPECT_NEAR(judge(at_least(1.1), bad).mean->factor, std::cbrt(1.2 * 1.4 * 1.0), 1e-3);
}

TEST(SpeedFinding, WhatIsNotMeasuredConfirmsNothing) {
  std::vector<MeasuredSpeed> some{case_of("a", {1.19, 1.20, 1.21}), case_of("b", {1.2, 1.2})};
  EXPECT_EQ(verdict_of(at_least(1.1), some), SpeedVerdict::unclear) << "two launches are no evidence";
  some[1] = {"b", {}, "side A ended as oom", false};
  EXPECT_EQ(verdict_of(on_average(1.1), some), SpeedVerdict::unclear);
  some[1] = {"b", {}, "side B is wrong: out[3] is 7", true};
  const SpeedFinding wrong = judge(at_least(1.1), some);
  EXPECT_EQ(wrong.verdict, SpeedVerdict::refuted) << "who is wrong has no speed";
  EXPECT_EQ(wrong.cause, SpeedCause::no_time);
  EXPECT_NE(reason_of(at_least(1.1), some).find("out[3] is 7"), std::string::npos);
  EXPECT_EQ(verdict_of(at_least(1.1), {}), SpeedVerdict::unclear);
}

// 1.008 and 1.010 are both "1.01": whoever asks about 2 % sees nothing then.
TEST(SpeedFinding, TellsAPartInAThousandAndTheBorderThatAnIntervalReachesAcross) {
  EXPECT_EQ(factor_text(1.0084), "1.008");
  EXPECT_EQ(factor_text(0.98765), "0.988");
  EXPECT_EQ(factor_text(2.4142), "2.41");
  const std::vector<MeasuredSpeed> one{case_of("c", {1.02, 1.03, 1.04})};
  EXPECT_EQ(reason_of(at_least(1.02), one),
            "the interval reaches across 1.020: it is 1.030 times as fast (95 %: 1.005 … 1.055)");
  EXPECT_NE(reason_of(at_least(1.03, 0.01), one).find("across 1.0197, 1 % less than claimed: "), std::string::npos);
  EXPECT_NE(reason_of(on_average(1.02), one).find("across 1.020: "), std::string::npos);
}

// "refuted: it is 1.050 times as fast" beside a border of "1.050" contradicted itself.
TEST(SpeedFinding, WhatIsPrintedBesideTheBorderComparesAsPrinted) {
  const auto reason = [](double factor, double speed, double tolerance) {
    return reason_of(at_least(factor, tolerance), {case_of("c", {speed, speed, speed})});
  };
  EXPECT_EQ(reason(1.05, 1.0496, 0), "in c it is 1.0496 times as fast (95 %: 1.0496 … 1.0496)");
  EXPECT_EQ(reason(1.05, 1.05, 0), "it is 1.050 times as fast (95 %: 1.050 … 1.050)") << "at least";
  EXPECT_EQ(border_text(at_least(1.05, 0.01)), "1.0395, 1 % less than claimed");
  EXPECT_EQ(reason(1.05, 1.0396, 0.01), "it is 1.040 times as fast (95 %: 1.040 … 1.040)");
  EXPECT_EQ(reason(1.05, 1.03947, 0.01), "in c it is 1.039 times as fast (95 %: 1.039 … 1.039)");
}

// Of several cases one refutes with a wider interval than the printed one.
TEST(SpeedFinding, SaysWhyACaseBelowTheBorderRefutesNothing) {
  const std::vector<MeasuredSpeed> several{case_of("a", {1.04, 1.043, 1.046}), case_of("b", {1.2, 1.2, 1.2}),
                                           case_of("d", {1.2, 1.2, 1.2})};
  const SpeedFinding finding = judge(at_least(1.051), several);
  EXPECT_EQ(finding.verdict, SpeedVerdict::unclear);
  const std::string told = reason_of(at_least(1.051), several);
  EXPECT_TRUE(told.starts_with("1 of 3 cases are unclear at 1.051; the least is 1.043 times as fast")) << told;
  EXPECT_TRUE(told.ends_with(" in a; to refute, one of 3 cases needs the 98.33 % interval")) << told;
}

TEST(SpeedFinding, SaysWhatCouldBeClaimed) {
  const SpeedFinding finding = judge(at_least(1.5), std::vector{case_of("a", {1.19, 1.20, 1.21})});
  EXPECT_EQ(verdict_of(at_least(finding.confirmable - 1e-4), {case_of("a", {1.19, 1.20, 1.21})}),
            SpeedVerdict::confirmed);
}

TEST(SpeedFinding, WhatCanBeClaimedIsNeverMoreThanWasShown) {
  EXPECT_EQ(claimable_text(1.20456), "1.204");
  EXPECT_EQ(claimable_text(12.3459), "12.34");
  EXPECT_EQ(claimable_text(123.456), "123.4");
  EXPECT_EQ(claimable_text(12345.6), "12340");
  EXPECT_EQ(claimable_text(0.0512999), "0.05129");
}

// Of claims that hold exactly at the border, in all of n cases, few may be refuted, however many cases there are.
TEST(SpeedFinding, ManyCasesRefuteNoTrueClaim) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise(0, 0.01);
  const SpeedBorder border = at_least(1.1);
  constexpr int kTrials = 400;
  for (const int cases : {1, 20}) {
    int refuted = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<MeasuredSpeed> measured;
      for (int i = 0; i < cases; ++i) {
        std::vector<double> speeds;
        for (int launch = 0; launch < 6; ++launch) speeds.push_back(1.1 * std::exp(noise(random)));
        measured.push_back(case_of("c", speeds));
      }
      if (judge(border, measured).verdict == SpeedVerdict::refuted) ++refuted;
    }
    // At most 2.5 %: 10 of 400; 21 or more come by chance in one of a thousand such tests.
    EXPECT_LE(refuted, 20) << cases;
  }
}

}  // namespace
}  // namespace syslab::words
