#include "device/allocator.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "core/error.hpp"
#include "tests/device/fake_segments.hpp"

namespace syslab::device {
namespace {

struct Fixture {
  explicit Fixture(std::size_t total = 1024 * kMi)
      : source(new FakeSegments(total, {Kind::cuda, 3})), allocator(std::unique_ptr<SegmentSource>(source), log) {}
  void* take(std::size_t bytes, Stream stream) { return allocator.allocate(bytes, "x", stream); }
  MemoryLog log;
  FakeSegments* source;
  CachingAllocator allocator;
};

Stream stream_number(std::uintptr_t number) { return {Kind::cuda, reinterpret_cast<void*>(number)}; }
const Stream kA = stream_number(16), kB = stream_number(32);

TEST(CachingAllocator, GivesTheSameBlockAgainWithoutAskingTheDevice) {
  Fixture fixture;
  void* first = fixture.take(64 * kMi, kA);
  fixture.allocator.release(first);
  const int asked = fixture.source->asked;
  for (int i = 0; i < 100; ++i) {
    void* again = fixture.take(64 * kMi, kA);
    EXPECT_EQ(again, first);
    fixture.allocator.release(again);
  }
  EXPECT_EQ(fixture.source->asked, asked);
}

TEST(CachingAllocator, BlocksAreDisjointAndAlignedWhateverTheOrder) {
  Fixture fixture;
  std::mt19937 random(7);
  std::map<std::byte*, std::size_t> live;
  std::uint64_t bytes_live = 0;
  for (int step = 0; step < 4000; ++step) {
    if (live.empty() || random() % 5 < 3) {
      const std::size_t bytes = 1 + random() % (random() % 4 == 0 ? 3 * kMi : 4096);
      auto* data = static_cast<std::byte*>(fixture.take(bytes, random() % 2 == 0 ? kA : kB));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 512, 0U);
      const auto after = live.lower_bound(data);
      ASSERT_TRUE(after == live.end() || data + bytes <= after->first);
      ASSERT_TRUE(after == live.begin() || std::prev(after)->first + std::prev(after)->second <= data);
      live[data] = bytes;
      bytes_live += bytes;
    } else {
      const auto chosen = std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
      bytes_live -= chosen->second;
      fixture.allocator.release(chosen->first);
      live.erase(chosen);
    }
    const CachingAllocator::Use use = fixture.allocator.use();
    ASSERT_EQ(use.asked, bytes_live);
    ASSERT_EQ(fixture.log.live_bytes(), static_cast<std::int64_t>(bytes_live));
    ASSERT_GE(use.blocks, use.asked);
    ASSERT_GE(use.reserved, use.blocks);
    ASSERT_EQ(use.reserved, fixture.source->held);
  }
  for (const auto& [data, bytes] : live) fixture.allocator.release(data);
  fixture.allocator.release_cached();
  EXPECT_EQ(fixture.source->held, 0U) << "neighbours were not joined again: segments are held";
  EXPECT_EQ(fixture.log.reserved_bytes(), 0);
}

TEST(CachingAllocator, AnotherStreamNeverGetsABlockThatTheFirstMayStillUse) {
  Fixture fixture;
  void* mine = fixture.take(kMi, kA);
  fixture.allocator.release(mine);
  EXPECT_NE(fixture.take(kMi, kB), mine);
  EXPECT_EQ(fixture.take(kMi, kA), mine);
}

TEST(CachingAllocator, ABlockUsedByAnotherStreamComesBackWhenThatStreamHasPassed) {
  Fixture fixture;
  void* block = fixture.take(64 * kMi, kA);
  fixture.allocator.used_on(block, kB);
  fixture.source->busy.insert(kB.handle);
  fixture.allocator.release(block);
  void* other = fixture.take(64 * kMi, kA);
  EXPECT_NE(other, block);
  fixture.source->busy.clear();
  EXPECT_EQ(fixture.take(64 * kMi, kA), block);
}

TEST(CachingAllocator, GivesCachedSegmentsBackBeforeItSaysThatThereIsNoRoom) {
  Fixture fixture(100 * kMi);
  fixture.allocator.release(fixture.take(60 * kMi, kA));
  EXPECT_NE(fixture.take(80 * kMi, kB), nullptr);
  EXPECT_EQ(fixture.source->held, 80 * kMi);
}

TEST(CachingAllocator, WaitsForOtherStreamsBeforeItSaysThatThereIsNoRoom) {
  Fixture fixture(100 * kMi);
  void* block = fixture.take(60 * kMi, kA);
  fixture.allocator.used_on(block, kB);
  fixture.source->busy.insert(kB.handle);
  fixture.allocator.release(block);
  EXPECT_EQ(fixture.take(60 * kMi, kA), block);
  EXPECT_EQ(fixture.source->waits, 1);
}

TEST(CachingAllocator, AnOomErrorTellsWhatWasAskedAndWhatThereIs) {
  Fixture fixture(100 * kMi);
  void* held = fixture.take(60 * kMi, kA);
  try {
    fixture.take(50 * kMi, kA);
    FAIL() << "there was no room";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::oom);
    const std::string text = error.what();
    for (const std::size_t number : {50 * kMi, 40 * kMi, 100 * kMi}) {
      EXPECT_NE(text.find(std::to_string(number)), std::string::npos) << text;
    }
    EXPECT_NE(text.find("GPU 3"), std::string::npos) << text;
  }
  fixture.allocator.release(held);
  EXPECT_NE(fixture.take(50 * kMi, kA), nullptr) << "a failed request must leave the allocator whole";
  EXPECT_THROW(fixture.take(~std::size_t{0}, kA), Error);
}

TEST(CachingAllocator, KeepsExactPeaksOfWhatWasAskedAndWhatWasReserved) {
  Fixture fixture;
  void* a = fixture.take(30 * kMi, kA);
  void* b = fixture.take(1000, kA);
  fixture.allocator.release(a);
  void* c = fixture.take(10 * kMi, kA);
  EXPECT_EQ(fixture.log.peak_bytes(), static_cast<std::int64_t>(30 * kMi + 1000));
  EXPECT_EQ(fixture.log.live_bytes(), static_cast<std::int64_t>(10 * kMi + 1000));
  EXPECT_EQ(fixture.log.peak_reserved_bytes(), static_cast<std::int64_t>(32 * kMi));
  fixture.allocator.release(b);
  fixture.allocator.release(c);
  fixture.allocator.release_cached();
  EXPECT_EQ(fixture.log.reserved_bytes(), 0);
  EXPECT_EQ(fixture.log.peak_reserved_bytes(), static_cast<std::int64_t>(32 * kMi));
}

TEST(CachingAllocator, TellsOfEveryEventWithItsTagAndCategory) {
  Fixture fixture;
  fixture.allocator.release(fixture.allocator.allocate(4096, "scores", kA, MemoryCategory::activation));
  const auto events = fixture.log.events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].delta, 4096);
  EXPECT_EQ(events[1].delta, -4096);
  EXPECT_EQ(events[1].tag, "scores");
  EXPECT_EQ(events[1].category, MemoryCategory::activation);
}

TEST(CachingAllocator, RefusesToBeToldOfMemoryThatIsNotOut) {
  Fixture fixture;
  void* block = fixture.take(512, kA);
  fixture.allocator.release(block);
  EXPECT_THROW(fixture.allocator.used_on(block, kB), Error);
  fixture.allocator.release(block);  // twice: nothing happens
  EXPECT_NE(fixture.take(512, kA), fixture.take(512, kA));
}

}  // namespace
}  // namespace syslab::device
