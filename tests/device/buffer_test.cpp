#include "device/buffer.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <thread>

#include "core/error.hpp"

namespace syslab::device {
namespace {

TEST(Buffer, IsAlignedAndWritableToItsLastByte) {
  MemoryLog log;
  for (const std::size_t bytes : {1, 127, 128, 129, 4097}) {
    const Buffer buffer(bytes, "x", log);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % kAlignment, 0U);
    buffer.as<char>()[bytes - 1] = 'z';
    EXPECT_EQ(log.live_bytes(), static_cast<std::int64_t>(bytes)) << "the log counts what was asked, not the padding";
  }
  EXPECT_EQ(log.live_bytes(), 0);
  EXPECT_EQ(log.peak_bytes(), 4097);
}

TEST(Buffer, OfNoBytesHasNoMemoryAndNoEvent) {
  MemoryLog log;
  const Buffer buffer(0, "nothing", log);
  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_TRUE(log.events().empty());
}

TEST(Buffer, MovingTransfersTheDutyToRelease) {
  MemoryLog log;
  Buffer first(64, "a", log);
  Buffer second(32, "b", log);
  EXPECT_EQ(log.live_bytes(), 96);
  second = std::move(first);
  EXPECT_EQ(log.live_bytes(), 64);
  const Buffer third(std::move(second));
  EXPECT_EQ(log.live_bytes(), 64);
  EXPECT_EQ(second.data(), nullptr);  // NOLINT: a moved-from buffer is empty by contract
  EXPECT_EQ(third.bytes(), 64U);
}

TEST(Buffer, TooLargeARequestIsAnOomErrorThatNamesItsPurpose) {
  for (const std::size_t bytes : {std::size_t{1} << 60, std::numeric_limits<std::size_t>::max()}) {
    try {
      const Buffer buffer(bytes, "scores");
      FAIL() << "an impossible allocation succeeded";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::oom);
      EXPECT_NE(std::string(error.what()).find("'scores'"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(std::to_string(bytes)), std::string::npos) << error.what();
    }
  }
}

TEST(MemoryLog, PeakIsTheLargestSumOfLiveBytes) {
  MemoryLog log;
  log.record(100, "a");
  log.record(50, "b");
  log.record(-100, "a");
  log.record(80, "c");
  EXPECT_EQ(log.live_bytes(), 130);
  EXPECT_EQ(log.peak_bytes(), 150);
  log.reset_peak();
  EXPECT_EQ(log.peak_bytes(), 130);
  log.record(1, "d");
  EXPECT_EQ(log.peak_bytes(), 131);
}

TEST(MemoryLog, KeepsEventsInOrderWithTheirTags) {
  MemoryLog log;
  { const Buffer buffer(8, "workspace", log); }
  const auto events = log.events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].delta, 8);
  EXPECT_EQ(events[1].delta, -8);
  EXPECT_EQ(events[1].tag, "workspace");
  EXPECT_LE(events[0].at, events[1].at);
  log.clear();
  EXPECT_TRUE(log.events().empty());
}

// Else whoever happens to call a library first would seem to need what it keeps for everybody.
TEST(MemoryLog, WhatALibraryKeepsIsNoCallers) {
  MemoryLog log;
  log.record(100, "x");
  log.record(1000, "kept", MemoryCategory::library);
  log.record(50, "y");
  EXPECT_EQ(log.live_bytes(), 150);
  EXPECT_EQ(log.peak_bytes(), 150);
  EXPECT_EQ(log.library_bytes(), 1000);
  EXPECT_EQ(log.events().size(), 3U) << "the timeline shows it all the same";
  log.record(-1000, "kept", MemoryCategory::library);
  EXPECT_EQ(log.library_bytes(), 0);
  EXPECT_EQ(log.live_bytes(), 150);
}

TEST(MemoryLog, CountsFromManyThreads) {
  MemoryLog log;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&log] {
      for (int i = 0; i < 500; ++i) const Buffer buffer(16, "t", log);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(log.live_bytes(), 0);
  EXPECT_EQ(log.events().size(), 4000U);
}

TEST(MemoryLog, KeepsExactPeaksWhenItStopsKeepingEvents) {
  MemoryLog log;
  for (std::size_t i = 0; i < MemoryLog::kMostEvents + 5; ++i) log.record(1, "again");
  EXPECT_EQ(log.events().size(), MemoryLog::kMostEvents);
  EXPECT_EQ(log.dropped_events(), 5);
  EXPECT_EQ(log.peak_bytes(), static_cast<std::int64_t>(MemoryLog::kMostEvents) + 5);
  log.clear();
  EXPECT_EQ(log.dropped_events(), 0);
}

}  // namespace
}  // namespace syslab::device
