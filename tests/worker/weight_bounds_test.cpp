#include "worker/cases/weight_bounds.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace syslab::worker {
namespace {

// Two parameters, of four elements and one; two right ways that differ by 1e-6 in the first.
constexpr std::array<std::int64_t, 2> kElements{4, 1};
constexpr std::array<float, 5> kAlone{1, 1, 1, 1, 1}, kOtherwise{1.000001F, 1, 1, 1, 1};

TEST(WeightBounds, WeightsOfOneProcessAreWithinTheirBound) {
  EXPECT_EQ(compare_weights(kAlone, kAlone, kOtherwise, kElements).worst, 0);
  EXPECT_LE(compare_weights(kOtherwise, kAlone, kOtherwise, kElements).worst, 1);
}

TEST(WeightBounds, AWeightThatIsFurtherThanRoundingIsNamedByItsParameter) {
  const std::array<float, 5> found{1, 1, 1, 1, 1.001F};
  const WeightBounds bounds = compare_weights(found, kAlone, kOtherwise, kElements);
  EXPECT_GT(bounds.worst, 1);
  EXPECT_EQ(bounds.parameter, 1U);
}

TEST(WeightBounds, AWeightThatIsNoNumberIsBeyondEveryBound) {
  const std::array<float, 5> found{std::numeric_limits<float>::quiet_NaN(), 1, 1, 1, 1};
  const WeightBounds bounds = compare_weights(found, kAlone, kOtherwise, kElements);
  EXPECT_TRUE(std::isinf(bounds.worst));
  EXPECT_EQ(bounds.parameter, 0U);
}

}  // namespace
}  // namespace syslab::worker
