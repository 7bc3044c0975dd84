#include "trace/recording.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "core/error.hpp"

namespace syslab::trace {
namespace {

using device::NvtxRange;
using device::RangeKind;

TEST(Recording, OnTheCpuTheRangesAreTheKernels) {
  Recording recording({});
  {
    const NvtxRange phase("forward", RangeKind::phase);
    const NvtxRange call("gemm", RangeKind::kernel, {}, "OpenBLAS");
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  const Trace trace = recording.finish();
  EXPECT_EQ(trace.source, "host clock");
  EXPECT_EQ(trace.why, "");
  EXPECT_EQ(trace.lost, 0);
  const std::vector<KernelStat> stats = kernel_stats(attribute(trace));
  ASSERT_EQ(stats.size(), 2U);
  EXPECT_EQ(stats[1].phase, "forward");
  EXPECT_EQ(stats[1].kernel, "gemm/OpenBLAS");
  EXPECT_GE(stats[1].total, std::chrono::milliseconds(2));
}

TEST(Recording, EndsOnce) {
  Recording recording({});
  static_cast<void>(recording.finish());
  const NvtxRange range("after");
  EXPECT_THROW(static_cast<void>(recording.finish()), Error);
}

// The CPU's events hold the host's times: the way by events gives what the spans give.
TEST(EventTap, TimesCallsAndWhatTheyLeave) {
  EventTap tap({});
  Recorder recorder(&tap);
  {
    const device::Listening listening(recorder);
    const NvtxRange outer("attention", RangeKind::kernel, {}, "literal");
    const NvtxRange part("scores", RangeKind::part);
    const NvtxRange inner("gemm", RangeKind::kernel, {}, "BLAS");
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  Trace trace;
  trace.spans = recorder.spans();
  tap.finish(trace);
  ASSERT_EQ(trace.activities.size(), 2U);
  EXPECT_EQ(trace.source, "events");
  EXPECT_EQ(belonging_of(trace.spans, trace.activities[1].span).operation, "attention.scores.gemm");
  EXPECT_GE(trace.activities[1].end - trace.activities[1].begin, std::chrono::milliseconds(2));
  EXPECT_GE(trace.activities[0].end, trace.activities[0].begin);
  const Nanoseconds off = trace.activities[1].begin - trace.spans[2].begin;
  EXPECT_LT(std::abs(off.count()), 1'000'000'000) << "on the clock of the spans";
}

TEST(EventTap, CallsWithoutEventsHaveNoTime) {
  EventTap tap({});
  Trace trace;
  trace.spans = {{.name = "gemm", .kind = RangeKind::kernel, .begin = Nanoseconds(1), .end = Nanoseconds(9)}};
  tap.finish(trace);
  EXPECT_TRUE(trace.activities.empty());
}

}  // namespace
}  // namespace syslab::trace
