#include "check/compare.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "check/guard.hpp"

namespace syslab::check {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

Comparison compare_floats(std::vector<float> found, std::vector<double> expected, std::vector<double> tolerance,
                          Shape shape) {
  return compare(ConstTensorView(found.data(), DType::f32, shape), expected, tolerance);
}

TEST(Compare, PassesWithinTheBoundOfEachElement) {
  const Comparison result = compare_floats({1.0F, 2.5F}, {1.0, 2.0}, {0.0, 0.5}, {2});
  EXPECT_TRUE(result.passed);
  EXPECT_EQ(result.compared, 2);
  EXPECT_EQ(result.wrong, 0);
  EXPECT_DOUBLE_EQ(result.worst_ratio, 1.0);
}

TEST(Compare, NamesTheElementFarthestBeyondItsOwnBound) {
  // The last has the larger error, the middle one the larger error for what it may have.
  const Comparison result =
      compare_floats({0.0F, 0.25F, 0, 0, 0, 1.0F}, {0, 0, 0, 0, 0, 0}, {1, 0.125, 1, 1, 1, 0.75}, {2, 3});
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.wrong, 2);
  EXPECT_EQ(result.worst_index, (std::vector<std::int64_t>{0, 1}));
  EXPECT_DOUBLE_EQ(result.worst_error, 0.25);
  EXPECT_DOUBLE_EQ(result.worst_tolerance, 0.125);
  EXPECT_DOUBLE_EQ(result.max_error, 1.0);
  EXPECT_EQ(result.describe("out"),
            "out[0, 1]: found 0.25, expected 0 ± 0.125 (2 × the bound); 2 of 6 wrong, within [0…1, 1…2]");
}

TEST(Compare, NumbersThatLookTheSameAreToldWithAllTheirDigits) {
  const double expected = 3.00047140e+17, found = expected + 64 * 512;
  const Comparison result =
      compare(ConstTensorView(&found, DType::f64, {1}), std::vector<double>{expected}, std::vector<double>{1});
  EXPECT_NE(result.describe("out").find("found 3.0004714000003277e+17, expected 3.0004714e+17 "), std::string::npos)
      << result.describe("out");
}

TEST(Compare, FollowsStrides) {
  const std::vector<float> memory{1, 99, 2, 99};
  const ConstTensorView view(memory.data(), DType::f32, {2, 1}, Strides{2, 1});
  EXPECT_TRUE(compare(view, std::vector<double>{1, 2}, std::vector<double>{0}).passed);
}

TEST(Compare, CallsEveryFoundNaNWrongWhateverTheTolerance) {
  const Comparison result = compare_floats({1.0F, std::nanf("")}, {1.0, 2.0}, {kInf}, {2});
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.wrong, 1);
  EXPECT_EQ(result.unwritten, 0);
  EXPECT_EQ(result.worst_index, (std::vector<std::int64_t>{1}));
}

// As where two calls are compared, and the first gave nothing but NaN.
TEST(Compare, SaysWhatWasSeenWhereNothingIsExpected) {
  const Comparison result = compare_floats({1.0F, std::nanf("")}, {kNaN, kNaN}, {0.0}, {2});
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.describe("out"), "out: every value that it is compared with is NaN, and so are 1 of the 2 found");
  EXPECT_EQ(compare_floats({1.0F}, {kNaN}, {0.0}, {1}).describe("out"),
            "out: every value that it is compared with is NaN");
}

TEST(Compare, MeetsInfiniteExpectationsOnlyExactly) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(compare_floats({-inf}, {-kInf}, {0.0}, {1}).passed);
  EXPECT_FALSE(compare_floats({inf}, {-kInf}, {1.0}, {1}).passed);
  EXPECT_FALSE(compare_floats({3e38F}, {kInf}, {1.0}, {1}).passed);
  EXPECT_FALSE(compare_floats({inf}, {1.0}, {kInf}, {1}).passed);
}

TEST(Compare, DoesNotAskWhatHasNoExpectation) {
  const Comparison result = compare_floats({7.0F, 1.0F}, {kNaN, 1.0}, {0.0}, {2});
  EXPECT_TRUE(result.passed);
  EXPECT_EQ(result.compared, 1);
}

TEST(Compare, IsNoSuccessWhenNothingWasAsked) {
  EXPECT_FALSE(compare_floats({7.0F}, {kNaN}, {0.0}, {1}).passed);
  EXPECT_TRUE(compare_floats({}, {}, {0.0}, {0}).passed);
}

TEST(Compare, RefusesANaNTolerance) { EXPECT_FALSE(compare_floats({1.5F}, {1.0}, {kNaN}, {1}).passed); }

// Else a bound that overflowed would accept whatever it was given.
TEST(Compare, AnInfiniteBoundAllowsNothingButTheValueItself) {
  const Comparison result = compare_floats({1.5F, 2.0F}, {1.0, 2.0}, {kInf}, {2});
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.wrong, 1);
  EXPECT_EQ(result.worst_index, (std::vector<std::int64_t>{0}));
  EXPECT_TRUE(compare_floats({2.0F}, {2.0}, {kInf}, {1}).passed);
}

TEST(Compare, TellsWhatWasNeverWritten) {
  GuardedTensor out(TensorSpec{"out", DType::f16, {4}});
  static_cast<f16*>(out.view().data)[0] = to_f16(1.0F);
  static_cast<f16*>(out.view().data)[1] = to_f16(std::nanf(""));
  const Comparison result = compare(out.view(), std::vector<double>{1, 1, 1, 1}, std::vector<double>{0});
  EXPECT_EQ(result.wrong, 3);
  EXPECT_EQ(result.unwritten, 2);
  EXPECT_NE(result.describe("out").find("3 of 4 wrong, within [1…3], 2 never written"), std::string::npos);
}

TEST(Compare, RefusesExpectationsOfAnotherSize) {
  EXPECT_THROW(compare_floats({1.0F, 2.0F}, {1.0}, {0.0}, {2}), Error);
  EXPECT_THROW(compare_floats({1.0F, 2.0F, 3.0F}, {1, 2, 3}, {0.0, 0.0}, {3}), Error);
}

}  // namespace
}  // namespace syslab::check
