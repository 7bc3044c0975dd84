// CudaDevice on the CPU's side of device/: what does not need a GPU to be proved.
#include "measure/cuda_device.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "core/error.hpp"
#include "device/cuda/launch.hpp"
#include "measure/sampler.hpp"

namespace syslab::measure {
namespace {

using namespace std::chrono_literals;

TEST(CudaDevice, TellsOfItsWindowsInOrderAndOnce) {
  CudaDevice device({});
  for (const auto duration : {4ms, 1ms, 2ms}) {
    device.queue_window([&] { std::this_thread::sleep_for(duration); });
  }
  const std::vector<Window> windows = device.collect();
  ASSERT_EQ(windows.size(), 3U);
  EXPECT_GE(windows[0].elapsed, 4ms);
  EXPECT_GE(windows[1].elapsed, 1ms);
  EXPECT_GE(windows[2].elapsed, 2ms);
  EXPECT_EQ(windows[0].flags, 0);
  EXPECT_TRUE(device.collect().empty());
}

TEST(CudaDevice, WorkThatThrowsLeavesNoWindowBehind) {
  CudaDevice device({});
  EXPECT_THROW(device.queue_window([] { throw std::runtime_error("no"); }), std::runtime_error);
  device.queue_window([] {});
  EXPECT_EQ(device.collect().size(), 1U);
}

TEST(CudaDevice, TakesNoMoreWindowsThanItSays) {
  CudaDevice device({});
  for (int i = 0; i < device.most_windows(); ++i) device.queue_window([] {});
  EXPECT_THROW(device.queue_window([] {}), Error);
  EXPECT_EQ(device.collect().size(), static_cast<std::size_t>(device.most_windows()));
}

TEST(CudaDevice, ServesTheSampler) {
  CudaDevice device({});
  Protocol protocol;
  protocol.warmup_time = 1ms;
  protocol.max_samples = 20;
  Subject subject;
  int calls = 0;
  subject.call = [&calls](int) {
    ++calls;
    std::this_thread::sleep_for(100us);
  };
  const Samples samples = take_samples(protocol, subject, {device}, 1, {});
  EXPECT_EQ(samples.seconds.size(), 20U);
  EXPECT_FALSE(samples.graphs) << "the CPU captures none";
  EXPECT_GE(calls, 20);
}

TEST(CudaDevice, WhatHoldsClocksDownBecomesFlags) {
  EXPECT_EQ(flags_of_clocks(0), 0);
  EXPECT_EQ(flags_of_clocks(kSlowedByIdle), 0);
  EXPECT_EQ(flags_of_clocks(0x4), kPowerCapped);
  EXPECT_EQ(flags_of_clocks(0x80), kPowerCapped);
  EXPECT_EQ(flags_of_clocks(0x20), kHot);
  EXPECT_EQ(flags_of_clocks(0x40 | 0x8), kHot | kHardwareSlowdown);
}

TEST(CudaDevice, WithoutAGpuSaysSo) {
  if (device::gpu_count() > 0) GTEST_SKIP() << "there is a GPU";
  try {
    CudaDevice device({device::Kind::cuda, 0});
    FAIL() << "there is no GPU";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
  }
}

}  // namespace
}  // namespace syslab::measure
