#include "trace/memory.hpp"

#include <gtest/gtest.h>

namespace syslab::trace {
namespace {

using device::MemoryCategory;
using device::MemoryEvent;

MemoryEvent event(std::int64_t at, std::int64_t delta, const char* tag,
                  MemoryCategory category = MemoryCategory::activation) {
  return {Nanoseconds(at), delta, tag, category};
}

const ForwardPass kForward{Nanoseconds(100), Nanoseconds(200)};

TEST(MemoryPairs, AReleaseEndsTheNewestAllocationOfItsTagAndSize) {
  const std::vector<Allocation> found = pair_events(
      {event(1, 64, "cast"), event(2, 64, "cast"), event(3, 32, "cast"), event(4, -64, "cast"), event(5, -64, "cast")},
      Nanoseconds(0));
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].end, Nanoseconds(5));
  EXPECT_EQ(found[1].end, Nanoseconds(4));
  EXPECT_EQ(found[2].end, std::nullopt) << "of another size";
}

TEST(MemoryPairs, AReleaseOfWhatNobodySawComeIsOfBefore) {
  const std::vector<Allocation> found = pair_events({event(120, -64, "logits")}, Nanoseconds(100));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].begin, Nanoseconds(100));
  EXPECT_EQ(found[0].end, Nanoseconds(120));
}

TEST(MemoryPairs, WhatIsKnownFromBeforeIsReleasedLikeTheRest) {
  const std::vector<Allocation> found =
      pair_events({event(120, -64, "weights", MemoryCategory::parameter)}, Nanoseconds(100),
                  {{"weights", MemoryCategory::parameter, 64, Nanoseconds(5), std::nullopt}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].end, Nanoseconds(120));
}

TEST(LiveKinds, AnActivationThatOutlivesTheForwardPassIsSaved) {
  const auto kind = [](std::int64_t begin, std::optional<std::int64_t> end) {
    Allocation one{"x", MemoryCategory::activation, 8, Nanoseconds(begin), std::nullopt};
    if (end) one.end = Nanoseconds(*end);
    return kind_of(one, kForward);
  };
  EXPECT_EQ(kind(120, 250), LiveKind::saved);
  EXPECT_EQ(kind(120, std::nullopt), LiveKind::saved);
  EXPECT_EQ(kind(120, 180), LiveKind::temporaries) << "gone before the pass ends";
  EXPECT_EQ(kind(220, 250), LiveKind::temporaries) << "made in backward";
  EXPECT_EQ(kind(50, 120), LiveKind::temporaries) << "of the step before";
}

TEST(LiveBytesCurve, AddsUpByKindAndKeepsThePeak) {
  const std::vector<Allocation> all = pair_events(
      {event(110, 100, "layers.0.qkv"), event(120, 50, "workspace", MemoryCategory::workspace),
       event(130, -50, "workspace", MemoryCategory::workspace), event(210, 30, "dqkv"),
       event(210, -100, "layers.0.qkv"), event(230, -30, "dqkv"), event(240, 999, "cuBLAS", MemoryCategory::library)},
      Nanoseconds(100), {{"weights", MemoryCategory::parameter, 1000, Nanoseconds(0), std::nullopt}});
  const std::vector<LiveBytes> curve = live_bytes(all, kForward, Nanoseconds(100));
  std::vector<std::int64_t> totals;
  for (const LiveBytes& one : curve) totals.push_back(one.total());
  EXPECT_EQ(totals, (std::vector<std::int64_t>{1000, 1100, 1150, 1100, 1030, 1000}));
  const LiveBytes peak = peak_of(curve);
  EXPECT_EQ(peak.at, Nanoseconds(120));
  EXPECT_EQ(peak.of[static_cast<std::size_t>(LiveKind::parameters)], 1000);
  EXPECT_EQ(peak.of[static_cast<std::size_t>(LiveKind::saved)], 100);
  EXPECT_EQ(peak.of[static_cast<std::size_t>(LiveKind::temporaries)], 50);
}

TEST(LiveBytesCurve, OfNothingHasNoPeak) { EXPECT_EQ(peak_of(live_bytes({}, kForward, {})).total(), 0); }

TEST(MemoryLogClock, TimesOfEventsAreOnIt) {
  device::MemoryLog log;
  const Nanoseconds before = log.now();
  log.record(8, "x");
  const Nanoseconds at = log.events().at(0).at;
  EXPECT_LE(before, at);
  EXPECT_LE(at, log.now());
}

}  // namespace
}  // namespace syslab::trace
