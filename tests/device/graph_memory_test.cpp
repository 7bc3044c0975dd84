// On the CPU, where a lending alone stands for the capture. What replays need is in gpu_graph_memory_test.cpp.
#include "device/cuda/graph_memory.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "device/buffer.hpp"
#include "tests/device/fake_segments.hpp"

namespace syslab::device {
namespace {

const Stream kMain{}, kSide{Kind::cpu, reinterpret_cast<void*>(16)};

struct Graphs {
  explicit Graphs(std::size_t total = 1024 * kMi) {
    auto owned = std::make_unique<FakeSegments>(total, Place{});
    source = owned.get();
    memory = std::make_shared<GraphMemory>(std::move(owned), log);
  }
  MemoryLog log;
  FakeSegments* source;
  std::shared_ptr<GraphMemory> memory;
};

TEST(GraphMemory, GivesABlockThatWasReleasedInsideACaptureOutAgainInsideIt) {
  const Graphs fixture;
  const GraphMemory::Lending lending(fixture.memory);
  Buffer first(30 * kMi, "a", kMain);
  const void* there = first.data();
  first = Buffer();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Buffer(30 * kMi, "b", kMain).data(), there);
  EXPECT_EQ(fixture.source->asked, 1);
}

TEST(GraphMemory, ServesNoBufferOutsideOfALending) {
  const Graphs fixture;
  const Buffer before(kMi, "x", kMain);
  { const GraphMemory::Lending lending(fixture.memory); }
  const Buffer after(kMi, "x", kMain);
  EXPECT_EQ(fixture.source->asked, 0);
  EXPECT_EQ(fixture.memory.use_count(), 1) << "the lending held on to it";
}

TEST(GraphMemory, ServesOnlyTheThreadThatItWasLentTo) {
  const Graphs fixture;
  const GraphMemory::Lending lending(fixture.memory);
  std::thread([] { const Buffer other(kMi, "x", kMain); }).join();
  const Buffer without_a_stream(kMi, "x");
  EXPECT_EQ(fixture.source->asked, 0);
  const Buffer mine(kMi, "x", kMain);
  EXPECT_EQ(fixture.source->asked, 1);
}

TEST(GraphMemory, OfAnInnerLendingCounts) {
  const Graphs outer, inner;
  const GraphMemory::Lending first(outer.memory);
  {
    const GraphMemory::Lending second(inner.memory);
    const Buffer buffer(kMi, "x", kMain);
    EXPECT_EQ(inner.source->asked, 1);
    EXPECT_EQ(outer.source->asked, 0);
  }
  const Buffer buffer(kMi, "x", kMain);
  EXPECT_EQ(outer.source->asked, 1);
}

TEST(GraphMemory, KeepsEverySegmentUntilItGoes) {
  Graphs fixture;
  {
    const GraphMemory::Lending lending(fixture.memory);
    for (const std::size_t bytes : {30 * kMi, 70 * kMi, std::size_t{100}}) const Buffer buffer(bytes, "x", kMain);
  }
  EXPECT_EQ(fixture.source->given_back, 0);
  EXPECT_EQ(fixture.memory->use().reserved, 102 * kMi);
  EXPECT_EQ(fixture.log.reserved_bytes(), static_cast<std::int64_t>(102 * kMi));
  EXPECT_EQ(fixture.log.live_bytes(), 0);
  fixture.memory = nullptr;
  EXPECT_EQ(fixture.log.reserved_bytes(), 0);
}

// Graphs captured before have its addresses.
TEST(GraphMemory, GivesNoSegmentBackWhenThereIsNoRoom) {
  const Graphs fixture(100 * kMi);
  const GraphMemory::Lending lending(fixture.memory);
  { const Buffer first(60 * kMi, "x", kMain); }
  try {
    const Buffer second(80 * kMi, "scores", kMain);
    FAIL() << "a segment was given back during a capture";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::oom);
    EXPECT_NE(std::string(error.what()).find("'scores'"), std::string::npos) << error.what();
  }
  EXPECT_EQ(fixture.source->given_back, 0);
  EXPECT_EQ(Buffer(60 * kMi, "x", kMain).bytes(), 60 * kMi) << "a failed request must leave the pool whole";
}

TEST(GraphMemory, IsKeptByABufferThatLeavesTheCapture) {
  Graphs fixture;
  Buffer result;
  {
    const GraphMemory::Lending lending(fixture.memory);
    result = Buffer(kMi, "result", kMain);
  }
  fixture.memory = nullptr;
  std::memset(result.data(), 1, result.bytes());
  EXPECT_EQ(fixture.log.live_bytes(), static_cast<std::int64_t>(kMi));
  EXPECT_EQ(fixture.log.reserved_bytes(), static_cast<std::int64_t>(2 * kMi));
  Buffer moved = std::move(result);
  result = Buffer();
  EXPECT_EQ(fixture.log.live_bytes(), static_cast<std::int64_t>(kMi));
  moved = Buffer();
  EXPECT_EQ(fixture.log.live_bytes(), 0);
  EXPECT_EQ(fixture.log.reserved_bytes(), 0);
}

// Whether the other stream's part has passed is only known when all of it is recorded, and nothing can be waited for.
TEST(GraphMemory, ABlockUsedByAnotherStreamIsNotReusedWithinTheSameCapture) {
  const Graphs fixture(100 * kMi);
  const void* there = nullptr;
  {
    const GraphMemory::Lending lending(fixture.memory);
    Buffer block(60 * kMi, "x", kMain);
    there = block.data();
    block.used_on(kSide);
    block = Buffer();
    EXPECT_THROW(Buffer(60 * kMi, "x", kMain), Error);
    EXPECT_EQ(fixture.source->waits, 0);
  }
  const GraphMemory::Lending next(fixture.memory);
  EXPECT_EQ(Buffer(60 * kMi, "x", kMain).data(), there);
}

TEST(GraphMemory, ABlockThatComesBackAfterTheCaptureWaitsForItsStreams) {
  const Graphs fixture;
  Buffer block;
  {
    const GraphMemory::Lending lending(fixture.memory);
    block = Buffer(60 * kMi, "x", kMain);
  }
  const void* there = block.data();
  block.used_on(kSide);
  fixture.source->busy.insert(kSide.handle);
  block = Buffer();
  const GraphMemory::Lending next(fixture.memory);
  const Buffer second(60 * kMi, "x", kMain);
  EXPECT_NE(second.data(), there);
  fixture.source->busy.clear();
  EXPECT_EQ(Buffer(60 * kMi, "x", kMain).data(), there);
}

TEST(GraphMemory, OfTheHostIsItsTwin) {
  const std::int64_t live = MemoryLog::global().live_bytes(), reserved = MemoryLog::global().reserved_bytes();
  auto memory = std::make_shared<GraphMemory>(Place{});
  Buffer result;
  {
    const GraphMemory::Lending lending(memory);
    result = Buffer(3 * kMi, "result", kMain, MemoryCategory::output);
    const Buffer scratch(100, "scratch", kMain);
    std::memset(result.data(), 7, result.bytes());
    std::memset(scratch.data(), 9, scratch.bytes());
  }
  EXPECT_EQ(result.as<char>()[3 * kMi - 1], 7);
  EXPECT_EQ(MemoryLog::global().live_bytes(), live + static_cast<std::int64_t>(3 * kMi));
  EXPECT_EQ(MemoryLog::global().reserved_bytes(), reserved + static_cast<std::int64_t>(22 * kMi));
  memory = nullptr;
  result = Buffer();
  EXPECT_EQ(MemoryLog::global().live_bytes(), live);
  EXPECT_EQ(MemoryLog::global().reserved_bytes(), reserved);
}

}  // namespace
}  // namespace syslab::device
