#include "stats/verdict.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.hpp"

namespace syslab::stats {
namespace {

Interval of_ratios(double low, double high) { return {std::log(low), std::log(high)}; }

TEST(Verdict, NeedsTheWholeIntervalBeyondTheThreshold) {
  EXPECT_EQ(verdict(of_ratios(1.011, 1.05), 0.01), Verdict::slower);
  EXPECT_EQ(verdict(of_ratios(1.009, 1.05), 0.01), Verdict::unclear);
  EXPECT_EQ(verdict(of_ratios(0.95, 0.989), 0.01), Verdict::faster);
  EXPECT_EQ(verdict(of_ratios(0.95, 0.992), 0.01), Verdict::unclear);
  EXPECT_EQ(verdict(of_ratios(0.95, 1.05), 0.01), Verdict::unclear);
  EXPECT_EQ(verdict(of_ratios(0.995, 1.009), 0.01), Verdict::same);
  EXPECT_EQ(verdict(of_ratios(1.011, 1.018), 0.02), Verdict::same);
}

TEST(Verdict, IsItsWordAndBack) {
  for (const Verdict one : {Verdict::faster, Verdict::slower, Verdict::same, Verdict::unclear, Verdict::incomparable}) {
    EXPECT_EQ(verdict_of(to_string(one)), one);
    EXPECT_EQ(swapped(swapped(one)), one);
  }
  EXPECT_EQ(swapped(Verdict::faster), Verdict::slower);
  EXPECT_EQ(verdict_of("quicker"), std::nullopt);
}

TEST(Verdict, WithoutAnIntervalIsUnclear) {
  constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(verdict({kNothing, kNothing}, 0.01), Verdict::unclear);
}

// Benjamini & Hochberg 1995, section 4.1: fifteen p values of a thrombolysis trial. Controlling the false discovery
// rate at 5 % rejects the four smallest, where Bonferroni's bound rejects three.
TEST(BenjaminiHochberg, RejectsWhatItsPaperRejects) {
  const std::vector<double> p{0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
                              0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000};
  const std::vector<double> q = benjamini_hochberg(p);
  for (std::size_t i = 0; i < q.size(); ++i) EXPECT_EQ(q[i] <= 0.05, i < 4) << i;
  EXPECT_DOUBLE_EQ(q[0], 0.0015);
  EXPECT_DOUBLE_EQ(q[1], 0.003);
  EXPECT_DOUBLE_EQ(q[2], 0.0095);
  EXPECT_DOUBLE_EQ(q[3], 0.035625);
  EXPECT_DOUBLE_EQ(q[4], 0.0603);
  EXPECT_DOUBLE_EQ(q[5], 0.0298 * 15 / 7);  // the step-up: the seventh p is the stronger evidence for the sixth as well
  EXPECT_DOUBLE_EQ(q[14], 1.0);
}

TEST(BenjaminiHochberg, LeavesOutWhatIsNoTest) {
  constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> q = benjamini_hochberg(std::vector<double>{0.02, kNothing, 0.01});
  EXPECT_DOUBLE_EQ(q[0], 0.02);
  EXPECT_TRUE(std::isnan(q[1]));
  EXPECT_DOUBLE_EQ(q[2], 0.02);
  EXPECT_TRUE(benjamini_hochberg({}).empty());
}

}  // namespace
}  // namespace syslab::stats
