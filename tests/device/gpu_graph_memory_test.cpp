#include <memory>
#include <random>

#include "core/error.hpp"
#include "device/allocator.hpp"
#include "device/cuda/graph.hpp"
#include "device/cuda/graph_memory.hpp"
#include "device/event.hpp"
#include "tests/device/gpu_fixture.hpp"
#include "tests/device/gpu_work.hpp"

namespace syslab::device {
namespace {

constexpr std::size_t kMi = std::size_t{1} << 20;
constexpr std::size_t kBytes = 8 * kMi;

class GpuGraphMemory : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    allocator_of(kGpu).release_cached();
    free_before_ = memory_use(kGpu).free;
    live_before_ = log().live_bytes();
    reserved_before_ = log().reserved_bytes();
  }
  static MemoryLog& log() { return MemoryLog::of(kGpu); }

  // Passes `input` through blocks of its own, each released before the next but one, adds one to the first word, and
  // leaves it in `output`.
  void pass_on(const Buffer& input, const Buffer& output) const {
    Buffer a(kBytes, "a", stream);
    copy(a.data(), input.data(), kBytes, stream);
    Buffer b(kBytes, "b", stream);
    copy(b.data(), a.data(), kBytes, stream);
    a = Buffer();
    const Buffer small(100, "small", stream);
    fill_bytes(small.data(), 0xee, small.bytes(), stream);
    const Buffer c(kBytes, "c", stream);
    copy(c.data(), b.data(), kBytes, stream);
    b = Buffer();
    add_one(c.as<std::uint32_t>(), stream);
    copy(output.data(), c.data(), kBytes, stream);
  }

  // What a program does between two replays: takes memory, writes all over it, gives it back, sometimes to the driver.
  void bustle(std::mt19937& random) const {
    std::vector<Buffer> held;
    for (int i = 0; i < 6; ++i) {
      held.emplace_back(1 + random() % (3 * kBytes), "other", stream);
      fill_bytes(held.back().data(), 0xff, held.back().bytes(), stream);
    }
    held.clear();
    if (random() % 8 == 0) allocator_of(kGpu).release_cached();
  }

  void expect_baseline() {
    allocator_of(kGpu).release_cached();
    EXPECT_EQ(log().live_bytes(), live_before_);
    EXPECT_EQ(log().reserved_bytes(), reserved_before_);
    EXPECT_NEAR(static_cast<double>(memory_use(kGpu).free), static_cast<double>(free_before_), 4.0 * kMi);
  }

  std::uint64_t free_before_ = 0;
  std::int64_t live_before_ = 0, reserved_before_ = 0;
};

std::vector<std::uint32_t> numbers(std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::uint32_t> values(kBytes / sizeof(std::uint32_t));
  for (std::uint32_t& value : values) value = static_cast<std::uint32_t>(random());
  return values;
}

TEST_F(GpuGraphMemory, ReplaysAreRightWhateverIsAllocatedInBetween) {
  {
    std::vector<std::uint32_t> values = numbers(1);
    const Buffer input = to_gpu(values), output(kBytes, "output", stream);
    const Capture captured = capture(
        stream, [&] { pass_on(input, output); }, std::make_shared<GraphMemory>(kGpu));
    ASSERT_TRUE(captured.graph) << captured.why;
    std::mt19937 random(2);
    for (int replay = 0; replay < 100; ++replay) {
      bustle(random);
      values[1] = static_cast<std::uint32_t>(replay);
      copy_now(input.data(), values.data(), kBytes, stream);
      captured.graph->replay(stream);
      bustle(random);
      std::vector<std::uint32_t> wanted = values;
      ++wanted[0];
      ASSERT_EQ(to_host<std::uint32_t>(output), wanted) << "replay " << replay;
    }
  }
  expect_baseline();
}

TEST_F(GpuGraphMemory, TheAccountOfACaptureIsThatOfTheSameWorkRun) {
  {
    const Buffer input(kBytes, "input", stream), output(kBytes, "output", stream);
    const std::int64_t live = log().live_bytes();
    log().reset_peak();
    pass_on(input, output);
    const std::int64_t peak = log().peak_bytes();
    EXPECT_EQ(peak, live + static_cast<std::int64_t>(2 * kBytes + 100));
    synchronize(stream);
    auto memory = std::make_shared<GraphMemory>(kGpu);
    log().reset_peak();
    const Capture captured = capture(
        stream, [&] { pass_on(input, output); }, memory);
    ASSERT_TRUE(captured.graph) << captured.why;
    EXPECT_EQ(log().peak_bytes(), peak);
    EXPECT_EQ(log().live_bytes(), live);
    EXPECT_EQ(memory->use().asked, 0U);
    EXPECT_EQ(memory->use().reserved, 22 * kMi) << "'c' lies where 'a' was";
    EXPECT_EQ(log().reserved_bytes(),
              static_cast<std::int64_t>(allocator_of(kGpu).use().reserved + memory->use().reserved));
    for (int i = 0; i < 10; ++i) captured.graph->replay(stream);
    synchronize(stream);
    EXPECT_EQ(log().peak_bytes(), peak);
    EXPECT_EQ(memory->use().segments_taken, 2);
  }
  expect_baseline();
}

TEST_F(GpuGraphMemory, WhatTheAllocatorHoldsUnusedIsGivenBackBeforeACapture) {
  { const Buffer large(256 * kMi, "activations of a run before", stream); }
  EXPECT_GE(allocator_of(kGpu).use().reserved, 256 * kMi);
  const Buffer counter = to_gpu(std::vector<std::uint32_t>{0});
  const Capture captured = capture(
      stream, [&] { add_one(counter.as<std::uint32_t>(), stream); }, std::make_shared<GraphMemory>(kGpu));
  ASSERT_TRUE(captured.graph) << captured.why;
  EXPECT_LT(allocator_of(kGpu).use().reserved, 256 * kMi);
}

TEST_F(GpuGraphMemory, AResultThatLeavesTheCaptureOutlivesTheGraph) {
  {
    Buffer result;
    {
      std::optional<Graph> graph;
      {
        Capture captured = capture(
            stream,
            [&] {
              result = Buffer(4, "result", stream);
              fill_bytes(result.data(), 0, 4, stream);
              for (int i = 0; i < 3; ++i) add_one(result.as<std::uint32_t>(), stream);
            },
            std::make_shared<GraphMemory>(kGpu));
        ASSERT_TRUE(captured.graph) << captured.why;
        graph = std::move(captured.graph);
      }
      graph->replay(stream);
      EXPECT_EQ(to_host<std::uint32_t>(result)[0], 3U);
      graph->replay(stream);
    }
    EXPECT_EQ(to_host<std::uint32_t>(result)[0], 3U);
  }
  expect_baseline();
}

TEST_F(GpuGraphMemory, AGraphMayGoWhileItsReplayRuns) {
  const Buffer counter = to_gpu(std::vector<std::uint32_t>{0});
  {
    const Capture captured = capture(
        stream,
        [&] {
          const Buffer own(kBytes, "own", stream);
          spin(20'000'000, stream);
          copy(own.data(), counter.data(), 4, stream);
          add_one(own.as<std::uint32_t>(), stream);
          copy(counter.data(), own.data(), 4, stream);
        },
        std::make_shared<GraphMemory>(kGpu));
    ASSERT_TRUE(captured.graph) << captured.why;
    captured.graph->replay(stream);
  }
  EXPECT_EQ(to_host<std::uint32_t>(counter)[0], 1U);
}

// The side stream's block must not be given to the main stream while the side stream's branch may still write it.
TEST_F(GpuGraphMemory, ABranchOfTheCaptureHasBlocksOfItsOwn) {
  const OwnedStream side(kGpu);
  const Buffer main_result = to_gpu(std::vector<std::uint32_t>{0}), side_result = to_gpu(std::vector<std::uint32_t>{0});
  const Capture captured = capture(
      stream,
      [&] {
        Event fork(kGpu), join(kGpu);
        fork.record(stream);
        fork.before(side);
        {
          const Buffer there(kBytes, "side", side);
          fill_bytes(there.data(), 0, kBytes, side);
          spin(5'000'000, side);
          add_one(there.as<std::uint32_t>(), side);
          copy(side_result.data(), there.data(), 4, side);
        }
        const Buffer here(kBytes, "main", stream);
        fill_bytes(here.data(), 0xff, kBytes, stream);
        add_one(here.as<std::uint32_t>(), stream);
        copy(main_result.data(), here.data(), 4, stream);
        join.record(side);
        join.before(stream);
      },
      std::make_shared<GraphMemory>(kGpu));
  ASSERT_TRUE(captured.graph) << captured.why;
  for (int replay = 0; replay < 3; ++replay) {
    captured.graph->replay(stream);
    EXPECT_EQ(to_host<std::uint32_t>(main_result)[0], 0U);
    EXPECT_EQ(to_host<std::uint32_t>(side_result)[0], 1U);
  }
}

TEST_F(GpuGraphMemory, TwoGraphsPassWhatTheOneLeavesForTheOther) {
  {
    const auto memory = std::make_shared<GraphMemory>(kGpu);
    const std::vector<std::uint32_t> values = numbers(3);
    const Buffer input = to_gpu(values), output(kBytes, "output", stream);
    Buffer saved;
    const Capture first = capture(
        stream,
        [&] {
          saved = Buffer(kBytes, "saved", stream);
          pass_on(input, saved);
        },
        memory);
    ASSERT_TRUE(first.graph) << first.why;
    const Capture second = capture(
        stream, [&] { pass_on(saved, output); }, memory);
    ASSERT_TRUE(second.graph) << second.why;
    EXPECT_EQ(memory->use().reserved, 42 * kMi) << "'saved', and one set of blocks for both";
    std::vector<std::uint32_t> wanted = values;
    wanted[0] += 2;
    std::mt19937 random(4);
    for (int replay = 0; replay < 5; ++replay) {
      first.graph->replay(stream);
      bustle(random);
      second.graph->replay(stream);
      EXPECT_EQ(to_host<std::uint32_t>(output), wanted);
    }
  }
  expect_baseline();
}

TEST_F(GpuGraphMemory, ACaptureThatRunsOutOfMemorySaysSoAndLeavesEverythingAsItWas) {
  {
    const auto memory = std::make_shared<GraphMemory>(kGpu);
    const std::uint64_t total = memory_use(kGpu).total;
    try {
      capture(
          stream,
          [&] {
            const Buffer small(kBytes, "small", stream);
            fill_bytes(small.data(), 0, kBytes, stream);
            const Buffer large(2 * total, "scores", stream);
          },
          memory);
      FAIL() << "twice the memory of the GPU was given";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::oom);
      EXPECT_NE(std::string(error.what()).find("'scores'"), std::string::npos) << error.what();
    }
    EXPECT_FALSE(is_capturing(stream));
    const Buffer counter = to_gpu(std::vector<std::uint32_t>{0});
    add_one(counter.as<std::uint32_t>(), stream);
    EXPECT_EQ(to_host<std::uint32_t>(counter)[0], 1U);
  }
  expect_baseline();
}

TEST_F(GpuGraphMemory, OfAnotherDeviceIsRefused) {
  EXPECT_THROW(capture(
                   stream, [] {}, std::make_shared<GraphMemory>(Place{})),
               Error);
  EXPECT_FALSE(is_capturing(stream));
}

}  // namespace
}  // namespace syslab::device
