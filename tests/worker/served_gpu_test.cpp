#include "worker/judged/served_gpu.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "worker/judged/shared_segment.hpp"

namespace syslab::worker {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kElements = 100;

// A call with an input and an output in memory that a host has arranged.
class ServedGpuTest : public testing::Test {
 protected:
  ServedGpuTest() {
    request.inputs = {{.name = "x", .shape = {kElements}, .strides = {1}}};
    request.outputs = {{.name = "y", .shape = {kElements}, .strides = {1}}};
    segment.arrange(request.inputs, request.outputs);
    segment.copy_in(request.inputs[0], x.data());
    request.memory_bytes = segment.bytes();
  }

  static void add_one(std::byte* memory, const CallRequest& of) {
    const auto* from = reinterpret_cast<const float*>(memory + of.inputs[0].offset);
    auto* to = reinterpret_cast<float*>(memory + of.outputs[0].offset);
    for (std::int64_t i = 0; i < kElements; ++i) to[i] = from[i] + 1;
  }

  std::vector<float> outputs() {
    std::vector<float> y(kElements);
    segment.copy_out(request.outputs[0], y.data());
    return y;
  }

  void run(const std::function<void(std::byte*)>& body) {
    std::byte* const there = gpu.copied(request, segment.data());
    ASSERT_NE(there, segment.data());
    gpu.run(
        request, [&] { body(there); }, segment.data());
  }

  ServedGpu gpu{device::Place{}};
  SharedSegment segment;
  CallRequest request;
  std::vector<float> x = std::vector<float>(kElements, 1.0F), expected = std::vector<float>(kElements, 2.0F);
};

TEST_F(ServedGpuTest, ACallComputesOnACopyAndItsOutputsComeBack) {
  run([this](std::byte* there) { add_one(there, request); });
  EXPECT_EQ(outputs(), expected);
  EXPECT_FALSE(segment.change_of(request.inputs[0], x.data()));
  EXPECT_EQ(segment.violation(request.outputs), std::nullopt);
}

// Whoever works before the call's turn on its stream works on NaN.
TEST_F(ServedGpuTest, InputsAreNotThereBeforeTheirTurn) {
  std::byte* const there = gpu.copied(request, segment.data());
  const auto* inputs = reinterpret_cast<const float*>(there + request.inputs[0].offset);
  EXPECT_TRUE(std::all_of(inputs, inputs + kElements, [](float value) { return std::isnan(value); }));
  gpu.run(
      request, [&] { EXPECT_EQ(std::vector<float>(inputs, inputs + kElements), x); }, segment.data());
}

TEST_F(ServedGpuTest, WhatIsLentIsNotCarried) {
  request.outputs.push_back({.name = "room", .shape = {kElements}, .strides = {1}, .lent = true});
  segment.arrange(request.inputs, request.outputs);
  segment.copy_in(request.inputs[0], x.data());
  request.memory_bytes = segment.bytes();
  const std::size_t room = request.outputs[1].offset;
  segment.data()[room] = std::byte{7};
  run([&](std::byte* there) {
    EXPECT_EQ(there[room], std::byte{0xff});
    add_one(there, request);
    there[room] = std::byte{3};
  });
  EXPECT_EQ(outputs(), expected);
  EXPECT_EQ(segment.data()[room], std::byte{7});
  EXPECT_EQ(segment.violation(request.outputs), std::nullopt);
  EXPECT_EQ(segment.data()[room], std::byte{7});
  run([&](std::byte* there) { there[room + kElements * sizeof(float)] = std::byte{3}; });  // but its end is watched
  EXPECT_NE(segment.violation(request.outputs), std::nullopt);
}

TEST_F(ServedGpuTest, TheHostSeesInputsThatWereChanged) {
  run([this](std::byte* there) { reinterpret_cast<float*>(there + request.inputs[0].offset)[7] = 3; });
  EXPECT_TRUE(segment.change_of(request.inputs[0], x.data()));
}

TEST_F(ServedGpuTest, AZeroThatGotASignIsToldAsSuch) {
  x[3] = 0.0F;
  segment.copy_in(request.inputs[0], x.data());
  run([this](std::byte* there) { reinterpret_cast<float*>(there + request.inputs[0].offset)[3] = -0.0F; });
  EXPECT_EQ(segment.change_of(request.inputs[0], x.data())->words, "1 of 100 elements, the first [3] from 0 to -0");
}

TEST_F(ServedGpuTest, AChangeInTheLastBitIsToldWithDigitsThatDiffer) {
  x[3] = -0.0607803F;
  segment.copy_in(request.inputs[0], x.data());
  run([this](std::byte* there) {
    reinterpret_cast<float*>(there + request.inputs[0].offset)[3] = std::nextafter(x[3], 0.0F);
  });
  EXPECT_EQ(segment.change_of(request.inputs[0], x.data())->words,
            "1 of 100 elements, the first [3] from -0.0607803017 to -0.060780298");
}

TEST_F(ServedGpuTest, TheHostSeesWhatWasWrittenBesideOutputs) {
  run([this](std::byte* there) {
    add_one(there, request);
    reinterpret_cast<float*>(there + request.outputs[0].offset)[kElements] = 3;
  });
  EXPECT_NE(segment.violation(request.outputs), std::nullopt);
}

// Whether the machine reads this byte: a write of it that the kernel does stops nobody.
bool is_mapped(const std::byte* at) {
  int ends[2] = {-1, -1};
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  const bool written = ::write(ends[1], at, 1) == 1;
  ::close(ends[0]);
  ::close(ends[1]);
  return written;
}

TEST_F(ServedGpuTest, OfAGuardedCallTensorsEndWhereTheirMappingsEnd) {
  segment.arrange(request.inputs, request.outputs, /*guarded=*/true);
  segment.copy_in(request.inputs[0], x.data());
  request.memory_bytes = segment.bytes();
  request.guarded = true;
  for (int call = 0; call < 2; ++call) {  // the second time in the same memory
    std::byte* const there = gpu.copied(request, segment.data());
    for (const SharedTensor* one : {&gpu.there().inputs[0], &gpu.there().outputs[0]}) {
      const std::byte* const end = there + guard_page_of(*one);
      EXPECT_TRUE(is_mapped(end - 1));
      EXPECT_FALSE(is_mapped(end));
    }
    gpu.run(
        request, [&] { add_one(there, gpu.there()); }, segment.data());
    EXPECT_EQ(outputs(), expected);
    EXPECT_FALSE(segment.change_of(request.inputs[0], x.data()));
    EXPECT_EQ(segment.violation(request.outputs), std::nullopt);
  }
  std::byte* const there = gpu.copied(request, segment.data());
  const std::size_t behind = gpu.there().outputs[0].offset + kElements * sizeof(float);
  gpu.run(
      request, [&] { there[behind] = std::byte{3}; }, segment.data());
  EXPECT_NE(segment.violation(request.outputs), std::nullopt);
}

TEST_F(ServedGpuTest, AGuardedCallThatWouldFillTheGpuIsNotFencedIn) {
  segment.arrange(request.inputs, request.outputs, /*guarded=*/true);
  segment.copy_in(request.inputs[0], x.data());
  request.memory_bytes = segment.bytes();
  request.guarded = true;
  ServedGpu small(device::Place{}, 1000);
  std::byte* const there = small.copied(request, segment.data());
  EXPECT_FALSE(small.is_fenced());
  EXPECT_TRUE(is_mapped(there + guard_page_of(small.there().inputs[0])));
  small.run(
      request, [&] { add_one(there, small.there()); }, segment.data());
  EXPECT_EQ(outputs(), expected);
  gpu.copied(request, segment.data());
  EXPECT_TRUE(gpu.is_fenced());
}

TEST_F(ServedGpuTest, AfterACallThatThrewTheNextIsAsEver) {
  const auto fails = [](std::byte*) { throw Error(ErrorKind::check, "no"); };
  EXPECT_THROW(run(fails), Error);
  run([this](std::byte* there) { add_one(there, request); });
  EXPECT_EQ(outputs(), expected);
}

// The host's side: it gives inputs, sees that the call is over, and says that it has the outputs.
TEST_F(ServedGpuTest, WithSharedMemoryACallWaitsForItsInputsAndForItsOutputsToBeTaken) {
  constexpr std::uint32_t kStep = 40;
  auto* words = reinterpret_cast<std::uint32_t*>(segment.data());
  const std::atomic_ref step(words[0]), done(words[16]);
  gpu.share(segment.data());
  ASSERT_TRUE(gpu.shares());
  std::atomic<bool> began = false, returned = false;
  std::thread call([&] {
    gpu.run_shared(
        kStep, [&] { began = true, add_one(segment.data(), request); }, [] {});
    returned = true;
  });
  step = kStep;
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(began);
  step = kStep + 1;
  while (done != kStep + 1) std::this_thread::yield();
  EXPECT_TRUE(began);
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(returned);
  EXPECT_EQ(outputs(), expected);
  step = kStep + 2;
  call.join();
  EXPECT_TRUE(returned);
}

TEST_F(ServedGpuTest, TheHostsMemoryIsFoundByItsHandle) {
  const device::PeerMemory one(64, "one", device::Place{}), other(64, "other", device::Place{});
  EXPECT_EQ(gpu.memory(one.handle()), one.at(0));
  EXPECT_EQ(gpu.memory(other.handle()), other.at(0));
}

}  // namespace
}  // namespace syslab::worker
