#include "measure/host_load.hpp"

#include <gtest/gtest.h>

namespace syslab::measure {
namespace {

TEST(HostLoad, ReadsTheKernelsTicks) {
  const auto ticks = parse_processor_ticks("cpu  10 20 30 400 5 6 7 22 1 2");
  ASSERT_TRUE(ticks.has_value());
  EXPECT_EQ(ticks->total, 500U) << "guest time is in user time already";
  EXPECT_EQ(ticks->stolen, 22U);
}

TEST(HostLoad, WhatIsNoSuchLineIsNotRead) {
  EXPECT_FALSE(parse_processor_ticks("").has_value());
  EXPECT_FALSE(parse_processor_ticks("cpu 1 2 3").has_value());
  EXPECT_FALSE(parse_processor_ticks("intr 1 2 3 4 5 6 7 8").has_value());
}

TEST(HostLoad, IsContendedWhenMoreWantsToRunThanThereAreProcessors) {
  EXPECT_FALSE((HostLoad{.load_average = 2.0, .steal_share = 0.0, .processors = 2}).contended());
  EXPECT_TRUE((HostLoad{.load_average = 2.1, .steal_share = 0.0, .processors = 2}).contended());
}

TEST(HostLoad, IsContendedWhenTheHypervisorTakesTime) {
  EXPECT_FALSE((HostLoad{.load_average = 0.1, .steal_share = 0.009, .processors = 2}).contended());
  EXPECT_TRUE((HostLoad{.load_average = 0.1, .steal_share = 0.02, .processors = 2}).contended());
}

TEST(HostLoad, NothingKnownIsNothingSaid) { EXPECT_FALSE(HostLoad{}.contended()); }

TEST(HostLoad, OfThisMachineIsPlausible) {
  const HostLoad load = HostWatch().finish();
  EXPECT_GE(load.processors, 1);
  ASSERT_TRUE(load.load_average.has_value());
  EXPECT_GE(*load.load_average, 0);
  if (load.steal_share) {
    EXPECT_GE(*load.steal_share, 0);
    EXPECT_LE(*load.steal_share, 1);
  }
}

}  // namespace
}  // namespace syslab::measure
