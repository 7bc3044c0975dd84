#include "stats/distributions.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

namespace syslab::stats {
namespace {

void expect_relative(double found, double wanted, double tolerance, const char* what, double at) {
  EXPECT_LE(std::abs(found - wanted), tolerance * std::abs(wanted)) << what << " at " << at << ": " << found;
}

// Two-sided 5 % and 1 % points: Fisher & Yates, "Statistical Tables", table III; the same in every textbook.
TEST(StudentT, TakesTheTabulatedQuantiles) {
  struct Row {
    double dof, t975, t995;
  };
  for (const Row row : {Row{1, 12.706, 63.657}, Row{2, 4.303, 9.925}, Row{3, 3.182, 5.841}, Row{4, 2.776, 4.604},
                        Row{5, 2.571, 4.032}, Row{8, 2.306, 3.355}, Row{10, 2.228, 3.169}, Row{14, 2.145, 2.977},
                        Row{20, 2.086, 2.845}, Row{30, 2.042, 2.750}, Row{60, 2.000, 2.660}, Row{120, 1.980, 2.617}}) {
    EXPECT_NEAR(student_t_quantile(0.975, row.dof), row.t975, 0.0005) << row.dof;
    EXPECT_NEAR(student_t_quantile(0.995, row.dof), row.t995, 0.0005) << row.dof;
  }
}

// dof 1, 2 and 4 have closed forms (Johnson & Kotz, chapter 28).
TEST(StudentT, AgreesWithClosedFormsToTenDigits) {
  for (const double p : {1e-12, 1e-6, 0.001, 0.025, 0.2, 0.4, 0.49}) {
    expect_relative(student_t_quantile(p, 1), -1 / std::tan(std::numbers::pi * p), 1e-11, "Cauchy", p);
    expect_relative(student_t_quantile(p, 2), (2 * p - 1) / std::sqrt(2 * p * (1 - p)), 1e-11, "two", p);
  }
  for (const double t : {0.001, 0.3, 1.0, 2.5, 7.0}) {
    const double u = t / std::sqrt(4 + t * t);
    expect_relative(student_t_two_sided_p(t, 4), 1 - 1.5 * (u - u * u * u / 3), 1e-12, "four", t);
  }
  // The far tail of four: 1 − 3u/2 + u³/2 cancels; its series in 1/t² does not: P(|T| > t) = 6/t⁴ − 40/t⁶ + O(t⁻⁸).
  expect_relative(student_t_two_sided_p(1e4, 4), 6e-16 - 40e-24, 1e-11, "tail", 1e4);
}

// Whole dof have finite sums (Abramowitz & Stegun 26.7.3 and 26.7.4), summed here in long double.
TEST(StudentT, AgreesWithTheFiniteSumOfWholeDegreesOfFreedom) {
  for (const int dof : {3, 5, 7, 11, 19, 20, 57, 101, 200, 1000}) {
    for (const long double t : {0.05L, 0.7L, 2.1L, 5.0L}) {
      const long double theta = std::atan(t / std::sqrt(static_cast<long double>(dof)));
      const long double cosine = std::cos(theta);
      long double term = dof % 2 == 1 ? cosine : 1;
      long double sum = dof > 1 ? term : 0;
      for (int k = dof % 2 == 1 ? 3 : 2; k <= dof - 2; k += 2) sum += term *= (k - 1) * cosine * cosine / k;
      const long double inside =
          dof % 2 == 1 ? 2 / std::numbers::pi_v<long double> * (theta + std::sin(theta) * sum) : std::sin(theta) * sum;
      const double found = student_t_two_sided_p(static_cast<double>(t), dof);
      EXPECT_NEAR(found, static_cast<double>(1 - inside), 2e-13) << "dof " << dof << ", t " << static_cast<double>(t);
    }
  }
}

TEST(StudentT, TendsToTheNormalDistribution) {
  const double infinity = std::numeric_limits<double>::infinity();
  // Cornish & Fisher: t = z + (z³ + z)/4ν + (5z⁵ + 16z³ + 3z)/96ν² + O(ν⁻³) (Abramowitz & Stegun 26.7.5).
  const double z = normal_quantile(0.975);
  for (const double dof : {1e3, 1e4, 1e5, 1e6}) {
    const double wanted =
        z + (std::pow(z, 3) + z) / (4 * dof) + (5 * std::pow(z, 5) + 16 * std::pow(z, 3) + 3 * z) / (96 * dof * dof);
    expect_relative(student_t_quantile(0.975, dof), wanted, dof < 5e3 ? 1e-8 : 1e-11, "nearly normal", dof);
  }
  EXPECT_DOUBLE_EQ(student_t_quantile(0.975, infinity), normal_quantile(0.975));
  EXPECT_DOUBLE_EQ(student_t_two_sided_p(1.5, infinity), 2 * normal_cdf(-1.5));
}

TEST(StudentT, QuantileInvertsTheDistributionAtAnyRealDegreesOfFreedom) {
  for (const double dof : {0.5, 1.3, 2.0, 4.7, 17.776, 99.9, 101.0, 5e4, 1e7}) {
    for (const double p : {1e-100, 1e-9, 0.003, 0.025, 0.31, 0.499}) {
      if (p < 1e-50 && dof < 1) continue;  // beyond the range of a double
      const double t = student_t_quantile(p, dof);
      EXPECT_LT(t, 0);
      expect_relative(student_t_two_sided_p(t, dof) / 2, p, 1e-10, "tail", dof);
    }
    EXPECT_EQ(student_t_quantile(0.5, dof), 0.0);
    EXPECT_DOUBLE_EQ(student_t_quantile(0.875, dof), -student_t_quantile(0.125, dof));
  }
}

TEST(StudentT, OfNonsenseIsNotANumber) {
  EXPECT_TRUE(std::isnan(student_t_quantile(1.5, 3)));
  EXPECT_TRUE(std::isnan(student_t_quantile(0.9, 0)));
  EXPECT_TRUE(std::isnan(student_t_two_sided_p(1, -1)));
  EXPECT_TRUE(std::isinf(student_t_quantile(1, 3)));
}

// Wichura 1988 (Algorithm AS 241) prints these three to check an implementation against.
TEST(NormalQuantile, TakesThePublishedValues) {
  expect_relative(normal_quantile(0.25), -0.6744897501960817, 1e-14, "AS 241", 0.25);
  expect_relative(normal_quantile(0.001), -3.090232306167814, 1e-14, "AS 241", 0.001);
  expect_relative(normal_quantile(1e-20), -9.262340089798408, 1e-14, "AS 241", 1e-20);
  expect_relative(normal_quantile(0.975), 1.959963984540054, 1e-14, "the usual", 0.975);
}

// Conover, table A3; Hahn & Meeker, table A.15.
TEST(MedianRank, TakesTheTabulatedRanks) {
  struct Row {
    std::size_t n, at_95, at_99;
  };
  for (const Row row : {Row{5, 0, 0}, Row{6, 1, 0}, Row{8, 1, 1}, Row{9, 2, 1}, Row{10, 2, 1}, Row{15, 4, 3},
                        Row{20, 6, 4}, Row{25, 8, 6}, Row{30, 10, 8}, Row{50, 18, 16}, Row{100, 40, 37}}) {
    EXPECT_EQ(median_rank(row.n, 0.95), row.at_95) << row.n;
    EXPECT_EQ(median_rank(row.n, 0.99), row.at_99) << row.n;
  }
}

}  // namespace
}  // namespace syslab::stats
