#include "claim/finding.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/text/format_factor.hpp"

namespace syslab::claim {
namespace {

// Launches of one block each, in which the hero is so many times as fast.
Measured case_of(const std::string& title, const std::vector<double>& speeds) {
  Measured measured{title, {}, {}, false};
  for (const double speed : speeds) {
    measured.blocks.push_back({static_cast<int>(measured.blocks.size()), -std::log(speed)});
  }
  return measured;
}

Verdict verdict_of(const std::string& claim, const std::vector<Measured>& measured, double tolerance = 0) {
  return judge(parse_statement(claim), measured, tolerance).verdict;
}

TEST(Finding, OfOneCaseIsWhereItsIntervalLies) {
  const std::vector<Measured> one{case_of("c", {1.19, 1.20, 1.21})};
  EXPECT_EQ(verdict_of("me >= 1.1 x it", one), Verdict::confirmed);
  EXPECT_EQ(verdict_of("me >= 1.2 x it", one), Verdict::unclear);
  EXPECT_EQ(verdict_of("me >= 1.3 x it", one), Verdict::refuted);
  const Finding finding = judge(parse_statement("me >= 1.1 x it"), one, 0);
  ASSERT_TRUE(finding.cases.front());
  EXPECT_NEAR(finding.cases.front()->factor, 1.2, 1e-3);
  // Student's t of two degrees of freedom: 4.303 standard errors of log speed.
  EXPECT_NEAR(finding.cases.front()->low, 1.2 * std::exp(-4.3027 * 0.008334 / std::sqrt(3.0)), 1e-4);
}

TEST(Finding, ToleranceTakesALittleLess) {
  const std::vector<Measured> one{case_of("c", {1.0945, 1.0950, 1.0955})};
  EXPECT_EQ(verdict_of("me >= 1.1 x it", one), Verdict::refuted);
  EXPECT_EQ(verdict_of("me >= 1.1 x it", one, 0.01), Verdict::confirmed);
  // A claim of 3 % more than is true is refuted all the same.
  EXPECT_EQ(verdict_of("me >= 1.03 x it", {case_of("c", {0.999, 1.0, 1.001})}, 0.01), Verdict::refuted);
}

TEST(Finding, TheBorderIsTheFactorLessTheTolerance) {
  EXPECT_DOUBLE_EQ(std::exp(log_border(parse_statement("me >= 1.1 x it"), 0.01)), 1.089);
  EXPECT_DOUBLE_EQ(std::exp(log_border(parse_statement("me >= 1.5 x it"), 0.4)), 0.9);
  EXPECT_EQ(border_text(parse_statement("me >= 2 x it"), 0.4), "1.200, 40 % less than claimed");
  const std::vector<Measured> one{case_of("c", {1.25, 1.25, 1.25})};
  EXPECT_EQ(verdict_of("me >= 2 x it", one, 0.4), Verdict::confirmed) << "37.5 % less";
  EXPECT_EQ(verdict_of("me >= 2 x it", one, 0.37), Verdict::refuted);
}

TEST(Finding, EqualityDoesNotTurnOnRounding) {
  for (const double scale : {1.0, 1e3, 1e-3, 7.0, 3e11}) {
    const double speed = 1 / (100 * scale) / (1 / (150 * scale));
    const std::vector<Measured> one{case_of("c", {speed, speed, speed})};
    EXPECT_EQ(verdict_of("new >= 1.5 x old", one), Verdict::confirmed) << scale;
    EXPECT_EQ(claimable_text(judge(parse_statement("new >= 1.6 x old"), one, 0).confirmable), "1.5") << scale;
  }
  const double less = 1.5 * (1 - 1e-8);
  EXPECT_EQ(verdict_of("new >= 1.5 x old", {case_of("c", {less, less, less})}), Verdict::refuted);
}

TEST(Finding, EveryCaseMustHoldAndOneRefutes) {
  const std::vector<Measured> good{case_of("a", {1.19, 1.20, 1.21}), case_of("b", {1.39, 1.40, 1.41})};
  EXPECT_EQ(verdict_of("me >= 1.1 x it", good), Verdict::confirmed);
  std::vector<Measured> bad = good;
  bad.push_back(case_of("slow one", {0.999, 1.0, 1.001}));
  const Finding finding = judge(parse_statement("me >= 1.1 x it"), bad, 0);
  EXPECT_EQ(finding.verdict, Verdict::refuted);
  EXPECT_NE(finding.reason.find("slow one"), std::string::npos) << finding.reason;
  EXPECT_EQ(verdict_of("me >= 1.1 x it in geometric mean", bad), Verdict::confirmed);
  EXPECT_NEAR(judge(parse_statement("me >= 1.1 x it"), bad, 0).mean->factor, std::cbrt(1.2 * 1.4 * 1.0), 1e-3);
}

TEST(Finding, WhatIsNotMeasuredConfirmsNothing) {
  std::vector<Measured> some{case_of("a", {1.19, 1.20, 1.21}), case_of("b", {1.2, 1.2})};
  EXPECT_EQ(verdict_of("me >= 1.1 x it", some), Verdict::unclear) << "two launches are no evidence";
  some[1] = {"b", {}, "side A ended as oom", false};
  EXPECT_EQ(verdict_of("me >= 1.1 x it in geometric mean", some), Verdict::unclear);
  some[1] = {"b", {}, "side B is wrong: out[3] is 7", true};
  const Finding wrong = judge(parse_statement("me >= 1.1 x it"), some, 0);
  EXPECT_EQ(wrong.verdict, Verdict::refuted) << "who is wrong has no speed";
  EXPECT_NE(wrong.reason.find("out[3] is 7"), std::string::npos);
  EXPECT_EQ(verdict_of("me >= 1.1 x it", {}), Verdict::unclear);
}

// 1.008 and 1.010 are both "1.01": whoever asks about 2 % sees nothing then.
TEST(Finding, TellsAPartInAThousandAndTheBorderThatAnIntervalReachesAcross) {
  EXPECT_EQ(factor_text(1.0084), "1.008");
  EXPECT_EQ(factor_text(0.98765), "0.988");
  EXPECT_EQ(factor_text(2.4142), "2.41");
  const std::vector<Measured> one{case_of("c", {1.02, 1.03, 1.04})};
  EXPECT_EQ(judge(parse_statement("me >= 1.02 x it"), one, 0).reason,
            "the interval reaches across 1.020: it is 1.030 times as fast (95 %: 1.005 … 1.055)");
  EXPECT_NE(judge(parse_statement("me >= 1.03 x it"), one, 0.01).reason.find("across 1.0197, 1 % less than claimed: "),
            std::string::npos);
  EXPECT_NE(judge(parse_statement("me >= 1.02 x it in geometric mean"), one, 0).reason.find("across 1.020: "),
            std::string::npos);
}

// "refuted: it is 1.050 times as fast" beside a border of "1.050" contradicted itself.
TEST(Finding, WhatIsPrintedBesideTheBorderComparesAsPrinted) {
  const auto reason = [](const std::string& claim, double speed, double tolerance) {
    return judge(parse_statement(claim), std::vector{case_of("c", {speed, speed, speed})}, tolerance).reason;
  };
  EXPECT_EQ(reason("me >= 1.05 x it", 1.0496, 0), "in c it is 1.0496 times as fast (95 %: 1.0496 … 1.0496)");
  EXPECT_EQ(reason("me >= 1.05 x it", 1.05, 0), "it is 1.050 times as fast (95 %: 1.050 … 1.050)") << "at least";
  EXPECT_EQ(border_text(parse_statement("me >= 1.05 x it"), 0.01), "1.0395, 1 % less than claimed");
  EXPECT_EQ(reason("me >= 1.05 x it", 1.0396, 0.01), "it is 1.040 times as fast (95 %: 1.040 … 1.040)");
  EXPECT_EQ(reason("me >= 1.05 x it", 1.03947, 0.01), "in c it is 1.039 times as fast (95 %: 1.039 … 1.039)");
}

// Of several cases one refutes with a wider interval than the printed one.
TEST(Finding, SaysWhyACaseBelowTheBorderRefutesNothing) {
  const std::vector<Measured> several{case_of("a", {1.04, 1.043, 1.046}), case_of("b", {1.2, 1.2, 1.2}),
                                      case_of("d", {1.2, 1.2, 1.2})};
  const Finding finding = judge(parse_statement("me >= 1.051 x it"), several, 0);
  EXPECT_EQ(finding.verdict, Verdict::unclear);
  EXPECT_TRUE(finding.reason.starts_with("1 of 3 cases are unclear at 1.051; the least is 1.043 times as fast"))
      << finding.reason;
  EXPECT_TRUE(finding.reason.ends_with(" in a; to refute, one of 3 cases needs the 98.33 % interval"))
      << finding.reason;
}

TEST(Finding, SaysWhatCouldBeClaimed) {
  const Finding finding = judge(parse_statement("me >= 1.5 x it"), std::vector{case_of("a", {1.19, 1.20, 1.21})}, 0);
  EXPECT_EQ(
      verdict_of("me >= " + std::to_string(finding.confirmable - 1e-4) + " x it", {case_of("a", {1.19, 1.20, 1.21})}),
      Verdict::confirmed);
}

TEST(Finding, WhatCanBeClaimedIsNeverMoreThanWasShown) {
  EXPECT_EQ(claimable_text(1.20456), "1.204");
  EXPECT_EQ(claimable_text(12.3459), "12.34");
  EXPECT_EQ(claimable_text(123.456), "123.4");
  EXPECT_EQ(claimable_text(12345.6), "12340");
  EXPECT_EQ(claimable_text(0.0512999), "0.05129");
}

// Of claims that hold exactly at the border, in all of n cases, few may be refuted, however many cases there are.
TEST(Finding, ManyCasesRefuteNoTrueClaim) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise(0, 0.01);
  const Statement statement = parse_statement("me >= 1.1 x it");
  constexpr int kTrials = 400;
  for (const int cases : {1, 20}) {
    int refuted = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<Measured> measured;
      for (int i = 0; i < cases; ++i) {
        std::vector<double> speeds;
        for (int launch = 0; launch < 6; ++launch) speeds.push_back(1.1 * std::exp(noise(random)));
        measured.push_back(case_of("c", speeds));
      }
      if (judge(statement, measured, 0).verdict == Verdict::refuted) ++refuted;
    }
    // At most 2.5 %: 10 of 400; 21 or more come by chance in one of a thousand such tests.
    EXPECT_LE(refuted, 20) << cases;
  }
}

}  // namespace
}  // namespace syslab::claim
