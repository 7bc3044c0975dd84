#include "ops/norm_statistics/norm_statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace syslab::norm_statistics {
namespace {

std::vector<double> wave(std::size_t n, double scale, double offset = 0) {
  std::vector<double> x;
  for (std::size_t i = 0; i < n; ++i) {
    x.push_back(to_float(to_f16(static_cast<float>(offset + scale * std::sin(1.0 + static_cast<double>(i * i))))));
  }
  return x;
}

TEST(NormStatistics, InDoubleTheyAreTheFormulas) {
  const std::vector<double> x = wave(100, 3, 1);
  double sum = 0, squares = 0;
  for (const double v : x) sum += v, squares += v * v;
  const double mean = sum / 100, variance = squares / 100 - mean * mean;
  const Result layer = normalise({Norm::layer_norm, Sum::sequential, DType::f64}, x);
  EXPECT_NEAR(layer.statistics.mean, mean, 1e-14);
  EXPECT_NEAR(layer.statistics.square, variance, 1e-12);
  EXPECT_NEAR(layer.y[7], (x[7] - mean) / std::sqrt(variance + 1e-5), 1e-12);
  const Result rms = normalise({Norm::rms_norm, Sum::pairwise, DType::f64}, x);
  EXPECT_EQ(rms.statistics.mean, 0);
  EXPECT_NEAR(rms.y[7], x[7] / std::sqrt(squares / 100 + 1e-5), 1e-13);
}

TEST(NormStatistics, EveryResultIsANumberOfTheFormat) {
  for (const DType format : {DType::f16, DType::bf16}) {
    const Result made = normalise({Norm::layer_norm, Sum::pairwise, format}, wave(300, 2));
    const auto is_one = [&](double v) {
      const auto f = static_cast<float>(v);
      return v == (format == DType::f16 ? to_float(to_f16(f)) : to_float(to_bf16(f)));
    };
    EXPECT_TRUE(is_one(made.statistics.mean) && is_one(made.statistics.square) && is_one(made.statistics.rstd));
    for (const double v : made.y) EXPECT_TRUE(is_one(v)) << v;
  }
}

TEST(NormStatistics, Fp16OverflowsFromTheFirstNumberWhoseSquareIsTooLarge) {
  // 255.875² = 65472 is a number of fp16 (65504 the largest); 256² is none.
  EXPECT_TRUE(
      std::isfinite(normalise({Norm::rms_norm, Sum::pairwise, DType::f16}, std::vector{255.875}).statistics.square));
  EXPECT_TRUE(std::isinf(normalise({Norm::rms_norm, Sum::pairwise, DType::f16}, std::vector{256.0}).statistics.square));
  EXPECT_TRUE(
      std::isfinite(normalise({Norm::rms_norm, Sum::pairwise, DType::bf16}, std::vector{256.0}).statistics.square));
}

TEST(NormStatistics, ASequentialSumInBf16StallsAndAPairwiseOneDoesNot) {
  const std::vector<double> ones(1024, 1.0);  // bf16 counts to 256
  EXPECT_EQ(normalise({Norm::rms_norm, Sum::sequential, DType::bf16}, ones).statistics.square, 0.25);
  EXPECT_EQ(normalise({Norm::rms_norm, Sum::pairwise, DType::bf16}, ones).statistics.square, 1.0);
}

TEST(NormStatistics, SumsStayWithinTheirBound) {
  for (const DType format : {DType::f32, DType::f16, DType::bf16}) {
    for (const Sum sum : {Sum::sequential, Sum::pairwise}) {
      const Problem problem{Norm::rms_norm, sum, format};
      const std::vector<double> x = wave(777, 1);
      const double exact = normalise({Norm::rms_norm, sum, DType::f64}, x).statistics.square;
      // Each square and the quotient are rounded once more than the sum.
      const double bound = (1 + sum_error_bound(problem, 777)) * std::pow(1 + unit_roundoff(format), 3) - 1;
      EXPECT_LE(std::abs(normalise(problem, x).statistics.square / exact - 1), bound) << to_string(format);
    }
  }
  EXPECT_NEAR(sum_error_bound({Norm::rms_norm, Sum::pairwise, DType::f16}, 1024), std::pow(1 + 0x1p-11, 10) - 1, 1e-15);
  EXPECT_NEAR(sum_error_bound({Norm::rms_norm, Sum::sequential, DType::f16}, 3), std::pow(1 + 0x1p-11, 2) - 1, 1e-15);
}

}  // namespace
}  // namespace syslab::norm_statistics
