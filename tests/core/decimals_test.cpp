#include "core/text/decimals.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "core/text/format_factor.hpp"

namespace syslab {
namespace {

TEST(Decimals, AreAsManyAsShowOnWhichSideOfTheBorderANumberIs) {
  EXPECT_EQ(decimals_beside(1.07, 1.05, 3), 3);
  EXPECT_EQ(decimals_beside(1.0496, 1.05, 3), 4);
  EXPECT_EQ(decimals_beside(1.0504, 1.05, 3), 4);
  EXPECT_EQ(decimals_beside(1.049996, 1.05, 3), 6);
  EXPECT_EQ(decimals_beside(-0.99005, -1 / 1.01, 2), 2) << "-0.99 is above -0.990099";
  EXPECT_EQ(decimals_beside(-0.9902, -1 / 1.01, 2), 4) << "-0.990 is above, -0.9902 is not";
}

TEST(Decimals, OfTheBorderItselfPrintAllOfIt) {
  EXPECT_EQ(factor_text(1.0395, 1.0395), "1.0395");
  EXPECT_EQ(factor_text(std::exp(std::log(1.05) + std::log1p(-0.01)), 1.0395), "1.0395") << "rounded arithmetic";
  EXPECT_EQ(factor_text(1.05, 1.05), "1.050");
  EXPECT_EQ(factor_text(12.3456, 12.3456), "12.3456");
}

TEST(Decimals, AFactorHasItsUsualOnesWhereTheyDo) {
  EXPECT_EQ(factor_text(1.204, 1.05), "1.204");
  EXPECT_EQ(factor_text(2.4142, 1.05), "2.41");
  EXPECT_EQ(factor_text(123.4, 1.05), "123");
  EXPECT_EQ(factor_text(0.05, 1.05), "0.05");
  EXPECT_EQ(factor_text(1.0496, 1.05), "1.0496");
  EXPECT_EQ(factor_text(99.7, 100), "99.7");
  EXPECT_EQ(factor_text(99.97, 100), "99.97");
  EXPECT_EQ(factor_text(0.05116, 0.0512), "0.05116");
}

TEST(Decimals, WhatHasNoSideEnds) {
  EXPECT_EQ(decimals_beside(HUGE_VAL, 1.05, 3), 3);
  EXPECT_EQ(decimals_beside(std::nan(""), 1.05, 3), 3);
}

// What is printed compares with the printed border as the numbers do, however close they are.
TEST(Decimals, APrintedComparisonIsTrueAsPrinted) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> exponent(-7.9, 0);
  for (const double border : {0.0512, 0.9, 1.05, 1.0395, 1.98, 9.995, 12.5, 250.0}) {
    const double printed = std::stod(factor_text(border, border));
    EXPECT_NEAR(printed, border, 1e-9 * border);
    for (int i = 0; i < 500; ++i) {
      const double apart = std::pow(10, exponent(random)) * (i % 2 == 0 ? 0.5 : -0.5);
      const double factor = border * (1 + apart);
      const std::string text = factor_text(factor, border);
      EXPECT_EQ(std::stod(text) < printed, factor < border) << fmt::format("{} {} {}", text, factor, border);
    }
  }
}

}  // namespace
}  // namespace syslab
