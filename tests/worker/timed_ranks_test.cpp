#include "worker/timed_ranks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/expect_contains.hpp"

namespace syslab::worker {
namespace {

// Two parameters, of four elements and one; two right ways that differ by 1e-6 in the first.
constexpr std::array<std::int64_t, 2> kElements{4, 1};
constexpr std::array<float, 5> kAlone{1, 1, 1, 1, 1}, kOtherwise{1.000001F, 1, 1, 1, 1};

TEST(TimedRanks, WeightsOfOneProcessAreWithinTheirBound) {
  EXPECT_EQ(compare_weights(kAlone, kAlone, kOtherwise, kElements).worst, 0);
  EXPECT_LE(compare_weights(kOtherwise, kAlone, kOtherwise, kElements).worst, 1);
}

TEST(TimedRanks, AWeightThatIsFurtherThanRoundingIsNamedByItsParameter) {
  const std::array<float, 5> found{1, 1, 1, 1, 1.001F};
  const WeightBounds bounds = compare_weights(found, kAlone, kOtherwise, kElements);
  EXPECT_GT(bounds.worst, 1);
  EXPECT_EQ(bounds.parameter, 1U);
}

TEST(TimedRanks, AWeightThatIsNoNumberIsBeyondEveryBound) {
  const std::array<float, 5> found{std::numeric_limits<float>::quiet_NaN(), 1, 1, 1, 1};
  const WeightBounds bounds = compare_weights(found, kAlone, kOtherwise, kElements);
  EXPECT_TRUE(std::isinf(bounds.worst));
  EXPECT_EQ(bounds.parameter, 0U);
}

TEST(TimedRanks, PhasesThatAddUpToTheTimeAreItsParts) {
  const std::vector<double> times(20, 0.1);
  EXPECT_EQ(phases_apart(std::vector<double>(20, 0.098), times), "");
  EXPECT_EQ(phases_apart({}, {}), "");
  std::vector<double> disturbed(20, 0.02);  // waits on a busy machine, in most of the steps
  std::fill_n(disturbed.begin(), 3, 0.099);
  EXPECT_EQ(phases_apart(disturbed, times), "");
}

TEST(TimedRanks, AFewStepsMayAllHaveMetAWaitForAProcessor) {
  const std::vector<double> times{0.056, 0.08};
  EXPECT_EQ(phases_apart(std::vector<double>{0.052, 0.0755}, times), "");
  EXPECT_NE(phases_apart(std::vector<double>{0.028, 0.04}, times), "");
}

TEST(TimedRanks, PhasesThatLeaveOutOrAddMuchOfEveryStepAreTold) {
  const std::vector<double> times(20, 0.1);
  expect_contains(phases_apart(std::vector<double>(20, 0.05), times),
                  "tells of phases of 50.0 ms together, the lab's of steps of 100 ms");
  EXPECT_NE(phases_apart(std::vector<double>(20, 0.096), times), "");
  EXPECT_NE(phases_apart(std::vector<double>(20, 0.2), times), "");
}

}  // namespace
}  // namespace syslab::worker
