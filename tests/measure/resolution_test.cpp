#include "measure/resolution.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace syslab::measure {
namespace {

Handover handover(double plain, double with_results, double share_of_calls = 1) {
  return {std::vector<double>(8, plain), std::vector<double>(8, with_results), share_of_calls};
}

TEST(Resolution, ATimeThatIsMostlyTheHandingOverIsRefused) {
  const Resolution seven = resolution_of(handover(12e-6, 12e-6), 19e-6);
  EXPECT_TRUE(seven.is_under());
  EXPECT_DOUBLE_EQ(seven.share, 12.0 / 19);
  EXPECT_TRUE(resolution_of(handover(12e-6, 12e-6), 12.7e-6).is_under());
}

TEST(Resolution, ATenthIsTheMostThatADifferenceOfTenPercentBears) {
  // 10 % of difference, of which a tenth is lost: 1 %, the smallest change that counts.
  EXPECT_TRUE(resolution_of(handover(12e-6, 12e-6), 119e-6).is_under());
  EXPECT_FALSE(resolution_of(handover(12e-6, 12e-6), 121e-6).is_under());
  EXPECT_FALSE(resolution_of(handover(12e-6, 12e-6), 1e-3).is_under());
}

TEST(Resolution, TheUpperEndOfTheNoiseCounts) {
  Handover noisy = handover(12e-6, 12e-6);
  noisy.plain = {12e-6, 12e-6, 12e-6, 680e-6, 680e-6};  // fewer than six: the interval is all of them
  const Resolution found = resolution_of(noisy, 1e-3);
  EXPECT_DOUBLE_EQ(found.handover, 12e-6);
  EXPECT_DOUBLE_EQ(found.handover_high, 680e-6);
  EXPECT_DOUBLE_EQ(found.least, 12e-6);
  EXPECT_TRUE(found.is_under());
}

TEST(Resolution, CopyingOfResultsIsWarnedOfFromATenthAndRefusedFromHalf) {
  EXPECT_FALSE(resolution_of(handover(12e-6, 0.5e-3), 10e-3).warns_of_results());
  EXPECT_TRUE(resolution_of(handover(12e-6, 3e-3), 10e-3).warns_of_results());
  EXPECT_FALSE(resolution_of(handover(12e-6, 3e-3), 10e-3).is_under());
  EXPECT_TRUE(resolution_of(handover(12e-6, 6e-3), 10e-3).is_under());
}

TEST(Resolution, WaitingOnABusyMachineIsNoCopyingOfResults) {
  Handover busy = handover(12e-6, 12e-6);
  busy.with_results = {15e-6, 2e-3, 3e-3, 3e-3, 4e-3};
  const Resolution found = resolution_of(busy, 10e-3);
  EXPECT_DOUBLE_EQ(found.share_with_results, 0.4);
  EXPECT_DOUBLE_EQ(found.least_share_with_results, 1.5e-3);
  EXPECT_FALSE(found.warns_of_results());
}

TEST(Resolution, ATimeByTheWorkersOwnClockHasNoHandingOverInIt) {
  const Resolution found = resolution_of(handover(50e-6, 50e-6, 0.3), 100e-6);
  EXPECT_FALSE(found.is_under());
  EXPECT_EQ(found.empty_calls, 0);
}

TEST(Resolution, WhereNothingIsKnownNothingIsRefused) {
  EXPECT_FALSE(resolution_of({}, 1e-6).is_under());
  EXPECT_FALSE(resolution_of({{}, {}, 1}, 1e-6).is_under());
}

}  // namespace
}  // namespace syslab::measure
