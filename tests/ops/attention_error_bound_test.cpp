// The bound against arithmetic that rounds as a right kernel does.
#include "ops/attention/error_bound.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace syslab::attention {
namespace {

// To TF32: ten explicit bits of the significand, to nearest.
double to_tf32(double x) {
  int exponent = 0;
  const double significand = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(significand, 11)), exponent - 11);
}

struct Row {
  double lse = 0, squares = 0, largest_score = 0;
};

Row softmax_row(double q, const std::vector<double>& keys, double scale, bool rounded) {
  Row row;
  double sum = 0, squares = 0;
  for (const double k : keys) {
    const double score = scale * (rounded ? to_tf32(q) * to_tf32(k) : q * k);
    row.largest_score = std::max(row.largest_score, score);
    sum += std::exp(score);
    squares += std::exp(2 * score);
  }
  row.lse = std::log(sum);
  row.squares = squares / (sum * sum);
  return row;
}

// A q whose one large number lies half-way between two of TF32 is rounded for all keys alike, and with many keys
// nothing else is left: seen as "140 of 65,536 rows wrong" of a right kernel at head_dim 16.
TEST(AttentionErrorBound, OneRoundingOfQForAllKeysIsNoFault) {
  constexpr std::int64_t kHeadDim = 16;
  const double scale = 1 / std::sqrt(static_cast<double>(kHeadDim));
  const double q = 4.5 * (1 + 0.9 * 0x1p-12);  // 4.5 is 1.125 · 2²: TF32's next number is 2⁻⁸ away
  ASSERT_NE(to_tf32(q), q);
  for (const int count : {64, 1024, 65536}) {
    std::mt19937_64 random(static_cast<unsigned>(count));
    std::normal_distribution<double> normal;
    std::vector<double> keys(static_cast<std::size_t>(count));
    double k_norm = 0;
    for (double& key : keys) {
      key = normal(random);
      k_norm = std::max(k_norm, std::abs(key));
    }
    const Row exact = softmax_row(q, keys, scale, false), found = softmax_row(q, keys, scale, true);
    const auto bound = [&](bool tf32) {
      return row_error(ErrorModel::of(DType::f32, tf32), kHeadDim, scale, q, k_norm, count, exact.squares, exact.lse,
                       exact.largest_score)
          .lse_bound;
    };
    EXPECT_LE(std::abs(found.lse - exact.lse), bound(true)) << count << " keys";
    // It stays a bound of TF32 alone, and one of some sharpness.
    EXPECT_LT(bound(true), 10 * 0x1p-11 * scale * q * k_norm) << count << " keys";
    EXPECT_LT(bound(false), bound(true) / 10) << count << " keys";
  }
}

// The C library's functions, over what kernels give them: scores less the largest of their row, and a sum of weights of
// which one is 1. log's error is absolute where it is below 1, as the bound of L takes it.
template <typename Real, typename Exact>
double worst_units_of_functions() {
  constexpr int kCount = 1 << 19;
  double worst = 0;
  for (int i = 0; i < kCount; ++i) {
    const double part = static_cast<double>(i) / kCount;
    const auto score = static_cast<Real>(-87.0 * part), sum = static_cast<Real>(std::exp2(24.0 * part));
    const Exact weight = std::exp(static_cast<Exact>(score)), log = std::log(static_cast<Exact>(sum));
    const Exact weight_error = std::abs(std::exp(score) - weight) / weight;
    const Exact log_error = std::abs(std::log(sum) - log) / std::max(Exact{1}, log);
    worst = std::max(worst, static_cast<double>(std::max(weight_error, log_error)));
  }
  return worst * 2 / static_cast<double>(std::numeric_limits<Real>::epsilon());
}

TEST(AttentionErrorBound, HoldsTheFunctionsOfTheHost) {
  const double of_floats = worst_units_of_functions<float, double>();
  EXPECT_LE(of_floats, kFunctionUlps);
  EXPECT_GE(of_floats, 0.5) << "less than rounding alone costs: was it computed in single precision?";
  const double of_doubles = worst_units_of_functions<double, long double>();
  EXPECT_LE(of_doubles, kFunctionUlps);
  EXPECT_GE(of_doubles, 0.5);
}

}  // namespace
}  // namespace syslab::attention
