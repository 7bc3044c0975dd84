#include "measure/floor.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/expect_contains.hpp"

namespace syslab::measure {
namespace {

constexpr double kMegabyte = 1e6;

const Peaks kGpu{.flops_per_second = 1e15, .bytes_per_second = 4.8e12, .flops_by = "units × clock", .bytes_by = "bus"};

NeededWork any_work() {
  // From nothing to 2⁵⁰ operations, masks leaving any part of them; tensors from one number to 64 GiB.
  const double visible = *rc::gen::inRange(0, 1001) / 1000.0;
  return {.flops = visible * static_cast<double>(std::uint64_t{1} << *rc::gen::inRange(0, 51)),
          .bytes = static_cast<double>(std::uint64_t{4} << *rc::gen::inRange(0, 35)),
          .cold = *rc::gen::arbitrary<bool>(),
          .last_level_cache_bytes = std::uint64_t{1} << *rc::gen::inRange(18, 27)};
}

// What the fastest honest kernel takes: all units and the whole bus always busy, and what a cache can keep not moved.
double fastest(const NeededWork& work, const Peaks& peaks) {
  const double cache = static_cast<double>(work.last_level_cache_bytes);
  const double moved = work.cold ? std::max(0.0, work.bytes - cache) : 0;
  return std::max(work.flops / peaks.flops_per_second, moved / peaks.bytes_per_second);
}

RC_GTEST_PROP(Floor, NoHonestKernelIsBelowIt, ()) {
  const NeededWork work = any_work();
  const auto floor = floor_of(work, kGpu);
  const double slower = 1 + *rc::gen::inRange(0, 100) / 100.0;
  if (floor) RC_ASSERT(!below_floor(fastest(work, kGpu) * slower, *floor));
}

RC_GTEST_PROP(Floor, AnImpossibleTimeIsBelowIt, ()) {
  NeededWork work = any_work();
  RC_PRE(work.flops > 0);
  const auto floor = floor_of(work, kGpu);
  RC_ASSERT(floor);
  RC_ASSERT(below_floor(work.flops / kGpu.flops_per_second * *rc::gen::inRange(0, 95) / 100.0, *floor));
}

RC_GTEST_PROP(Floor, BytesCountInColdCachesAndBigCallsAlone, ()) {
  NeededWork work = any_work();
  work.flops = 0;
  const bool big = work.bytes >= 4.0 * static_cast<double>(work.last_level_cache_bytes);
  RC_ASSERT(floor_of(work, kGpu).has_value() == (work.cold && big));
}

TEST(Floor, TheArithmeticIsShown) {
  const auto floor = floor_of({.flops = 1e12}, kGpu);
  ASSERT_TRUE(floor);
  EXPECT_DOUBLE_EQ(floor->seconds, 1e-3);
  EXPECT_FALSE(below_floor(0.96e-3, *floor)) << "5 % may be the clock's";
  const auto why = below_floor(0.5e-3, *floor);
  ASSERT_TRUE(why);
  expect_contains(*why, "500 us is below 1.00 ms");
  expect_contains(*why, "1e+12 operations at most 1e+15 a second (units × clock)");
}

TEST(Floor, WhatTheCacheMayKeepIsNotAsked) {
  const auto floor = floor_of(
      {.bytes = 400 * kMegabyte, .cold = true, .last_level_cache_bytes = static_cast<std::uint64_t>(100 * kMegabyte)},
      kGpu);
  ASSERT_TRUE(floor);
  EXPECT_DOUBLE_EQ(floor->seconds, 300 * kMegabyte / 4.8e12);
}

TEST(Floor, WithoutPeaksThereIsNone) {
  EXPECT_FALSE(floor_of({.flops = 1e15, .bytes = 1e12, .cold = true, .last_level_cache_bytes = 1}, {}));
  EXPECT_FALSE(floor_of({}, kGpu));
}

#if defined(__x86_64__)
TEST(Floor, NarrowNumbersAreNoSlowerOnThisMachine) {
  const double wide = host_peaks(DType::f64).flops_per_second, narrow = host_peaks(DType::f32).flops_per_second;
  EXPECT_GE(wide, 7e9 * 6 * 2) << "a lane pair of SSE2 at least";
  EXPECT_GE(narrow, wide);
  EXPECT_GE(host_peaks(DType::bf16).flops_per_second, narrow);
}

TEST(Floor, OfThisMachineTheArithmeticNamesClockAndUnits) {
  const Peaks peaks = host_peaks(DType::f32);
  EXPECT_EQ(peaks.bytes_per_second, 0) << "nothing is known of its memory";
  expect_contains(peaks.flops_by, "7.00 GHz");
}
#endif

}  // namespace
}  // namespace syslab::measure
