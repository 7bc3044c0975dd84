#include "core/error.hpp"
#include "core/nvml.hpp"
#include "device/cuda/graph.hpp"
#include "device/cuda/sm_clock.hpp"
#include "device/event.hpp"
#include "device/gate.hpp"
#include "device/properties.hpp"
#include "tests/device/gpu_fixture.hpp"
#include "tests/device/gpu_work.hpp"

namespace syslab::device {
namespace {

using namespace std::chrono_literals;

class GpuStream : public GpuTest {};
class GpuGraph : public GpuTest {};
class GpuClock : public GpuTest {};
class GpuLaunch : public GpuTest {};

TEST_F(GpuStream, KnowsItsDeviceAndWhenItIsIdle) {
  EXPECT_EQ(place_of(stream), kGpu);
  EXPECT_TRUE(is_idle(stream));
  spin(5'000'000, stream);
  EXPECT_FALSE(is_idle(stream));
  synchronize(stream);
  EXPECT_TRUE(is_idle(stream));
}

TEST_F(GpuStream, WaitingForTheDeviceLetsNoSideStreamEscape) {
  const OwnedStream side(kGpu);
  spin(20'000'000, side);
  synchronize(stream);
  EXPECT_FALSE(is_idle(side));
  synchronize(kGpu);
  EXPECT_TRUE(is_idle(side));
}

TEST_F(GpuStream, EventsTimeTheWorkBetweenThem) {
  Event begin(kGpu, Timing::yes), end(kGpu, Timing::yes);
  spin(1'000'000, stream);  // first call: the module is loaded
  begin.record(stream);
  spin(3'000'000, stream);
  end.record(stream);
  EXPECT_FALSE(end.done());
  end.synchronize();
  EXPECT_TRUE(end.done());
  EXPECT_GE(elapsed(begin, end), 3ms);
  EXPECT_LT(elapsed(begin, end), 4ms);
}

TEST_F(GpuStream, AnEventOrdersTwoStreams) {
  const OwnedStream later(kGpu);
  Event mark(kGpu);
  const Buffer counter = to_gpu(std::vector<std::uint32_t>{0});
  add_one(counter.as<std::uint32_t>(), later);  // first call: the module is loaded
  synchronize(later);
  spin(10'000'000, stream);
  mark.record(stream);
  mark.before(later);
  add_one(counter.as<std::uint32_t>(), later);
  EXPECT_FALSE(is_idle(later));
  synchronize(later);
  EXPECT_TRUE(is_idle(stream));
}

TEST_F(GpuStream, AGateHoldsWorkBackUntilItIsOpened) {
  Gate gate(stream, 200ms);
  Event begin(kGpu, Timing::yes), end(kGpu, Timing::yes);
  gate.close();
  begin.record(stream);
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(begin.done());
  end.record(stream);
  gate.open();
  synchronize(stream);
  EXPECT_LT(elapsed(begin, end), 1ms) << "what the host took is in the window";
  EXPECT_EQ(gate.expired(), 0U);
}

TEST_F(GpuStream, AGateThatNobodyOpensOpensByItself) {
  Gate gate(stream, 5ms);
  gate.close();
  synchronize(stream);
  EXPECT_EQ(gate.expired(), 1U);
  gate.open();
}

TEST_F(GpuGraph, ReplaysWhatWasRecordedWithoutRunningItFirst) {
  const Buffer counter = to_gpu(std::vector<std::uint32_t>{0});
  const Capture captured = capture(stream, [&] {
    for (int i = 0; i < 3; ++i) add_one(counter.as<std::uint32_t>(), stream);
  });
  ASSERT_TRUE(captured.graph) << captured.why;
  EXPECT_EQ(captured.graph->nodes(), 3U);
  EXPECT_EQ(to_host<std::uint32_t>(counter)[0], 0U);
  captured.graph->replay(stream);
  captured.graph->replay(stream);
  EXPECT_EQ(to_host<std::uint32_t>(counter)[0], 6U);
}

TEST_F(GpuGraph, WorkThatWaitsForTheDeviceIsNotCapturedAndTheStreamStaysUsable) {
  const Buffer counter = to_gpu(std::vector<std::uint32_t>{0});
  const Capture captured = capture(stream, [&] {
    add_one(counter.as<std::uint32_t>(), stream);
    synchronize(stream);
  });
  EXPECT_FALSE(captured.graph);
  EXPECT_FALSE(captured.why.empty());
  add_one(counter.as<std::uint32_t>(), stream);
  EXPECT_EQ(to_host<std::uint32_t>(counter)[0], 1U);
}

// A replay would write to memory that somebody else has by then.
TEST_F(GpuGraph, WorkThatTakesItsOwnMemoryIsNotCaptured) {
  const Capture captured = capture(stream, [&] {
    const Buffer own(4096, "own scratch", stream);
    fill_bytes(own.data(), 0, own.bytes(), stream);
  });
  EXPECT_FALSE(captured.graph);
  EXPECT_NE(captured.why.find("'own scratch'"), std::string::npos) << captured.why;
  EXPECT_FALSE(is_capturing(stream));
}

TEST_F(GpuGraph, WorkThatQueuesNothingHereMakesNoGraph) {
  const OwnedStream elsewhere(kGpu);
  const Capture captured = capture(stream, [&] { spin(1000, elsewhere); });
  EXPECT_FALSE(captured.graph);
  EXPECT_NE(captured.why.find("nothing"), std::string::npos) << captured.why;
}

TEST_F(GpuGraph, WhatTheWorkThrowsForItsOwnReasonsPassesThrough) {
  EXPECT_THROW(capture(stream, [&] { throw Error(ErrorKind::usage, "mine"); }), Error);
  EXPECT_FALSE(is_capturing(stream));
  EXPECT_TRUE(is_idle(stream));
}

TEST_F(GpuClock, TellsARateThatThisGpuCanHave) {
  SmClock clock(stream, 3);
  const int blocks = properties(kGpu).multiprocessors;
  spin_everywhere(20'000'000, blocks, stream);
  for (int i = 0; i < 2; ++i) {
    clock.begin(i);
    spin_everywhere(2'000'000, blocks, stream);
    clock.end(i);
  }
  const auto rates = clock.read();
  ASSERT_EQ(rates.size(), 3U);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(rates[static_cast<std::size_t>(i)]);
    EXPECT_GT(*rates[static_cast<std::size_t>(i)], 0.2e9);
    EXPECT_LT(*rates[static_cast<std::size_t>(i)], 3e9);
    RecordProperty("sm_mhz_" + std::to_string(i), static_cast<int>(*rates[static_cast<std::size_t>(i)] / 1e6));
  }
  EXPECT_FALSE(rates[2]) << "nothing was stamped there";
  EXPECT_FALSE(clock.read()[0]) << "read() forgets";
}

TEST_F(GpuClock, NvmlTellsTheStateOfTheSameGpu) {
  const Nvml nvml;
  if (!nvml.usable()) GTEST_SKIP() << nvml.why();
  const NvmlDevice device = nvml.device(properties(kGpu).uuid);
  ASSERT_NE(device, nullptr);
  spin_everywhere(50'000'000, properties(kGpu).multiprocessors, stream);
  const GpuState state = nvml.state(device);
  synchronize(stream);
  ASSERT_TRUE(state.sm_mhz && state.watts && state.celsius && state.slowed_by);
  EXPECT_GT(*state.sm_mhz, 200U);
  EXPECT_LT(*state.sm_mhz, 3000U);
  EXPECT_GT(*state.watts, 10);
  EXPECT_LT(*state.celsius, 120U);
}

TEST_F(GpuLaunch, AFailedLaunchNamesItsKernelAndIsForgottenAfterwards) {
  launch_with_too_many_threads(stream);
  try {
    check_launch("add_kernel");
    FAIL() << "4096 threads a block were launched";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_NE(std::string(error.what()).find("'add_kernel'"), std::string::npos) << error.what();
  }
  check_launch("nothing");
}

TEST_F(GpuLaunch, AGpuThatDoesNotExistIsAnError) {
  EXPECT_THROW(OwnedStream({Kind::cuda, 4096}), Error);
  const CurrentDevice still(kGpu);
}

// In a process of its own: the GPU is lost to it.
TEST_F(GpuLaunch, AKernelThatWritesToNowhereIsTold) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        const OwnedStream own(kGpu);
        try {
          write_to_nowhere(own);
          synchronize(own);
        } catch (const Error& error) {
          fprintf(stderr, "%s", error.what());
          std::_Exit(error.kind() == ErrorKind::device ? 3 : 4);
        }
        std::_Exit(0);
      },
      testing::ExitedWithCode(3), "compute-sanitizer");
}

}  // namespace
}  // namespace syslab::device
