#include "worker/wire/tell_ranks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/expect_contains.hpp"

namespace syslab::worker {
namespace {

TEST(TellRanks, PhasesThatAddUpToTheTimeAreItsParts) {
  const std::vector<double> times(20, 0.1);
  EXPECT_EQ(phases_apart(std::vector<double>(20, 0.098), times), "");
  EXPECT_EQ(phases_apart({}, {}), "");
  std::vector<double> disturbed(20, 0.02);  // waits on a busy machine, in most of the steps
  std::fill_n(disturbed.begin(), 3, 0.099);
  EXPECT_EQ(phases_apart(disturbed, times), "");
}

TEST(TellRanks, AFewStepsMayAllHaveMetAWaitForAProcessor) {
  const std::vector<double> times{0.056, 0.08};
  EXPECT_EQ(phases_apart(std::vector<double>{0.052, 0.0755}, times), "");
  EXPECT_NE(phases_apart(std::vector<double>{0.028, 0.04}, times), "");
}

TEST(TellRanks, PhasesThatLeaveOutOrAddMuchOfEveryStepAreTold) {
  const std::vector<double> times(20, 0.1);
  expect_contains(phases_apart(std::vector<double>(20, 0.05), times),
                  "tells of phases of 50.0 ms together, the lab's of steps of 100 ms");
  EXPECT_NE(phases_apart(std::vector<double>(20, 0.096), times), "");
  EXPECT_NE(phases_apart(std::vector<double>(20, 0.2), times), "");
}

}  // namespace
}  // namespace syslab::worker
