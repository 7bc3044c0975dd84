// The CPU's side of the door: the same functions, done when they return.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "device/buffer.hpp"
#include "device/cuda/cublas.hpp"
#include "device/cuda/cuda_error.hpp"
#include "device/cuda/graph.hpp"
#include "device/cuda/launch.hpp"
#include "device/cuda/nvtx.hpp"
#include "device/cuda/sm_clock.hpp"
#include "device/event.hpp"
#include "device/fill_random.hpp"
#include "device/gate.hpp"
#include "device/memory.hpp"
#include "device/pattern.hpp"
#include "device/properties.hpp"
#include "device/stream.hpp"

namespace syslab::device {
namespace {

TEST(CpuTwin, EventsTellTheTimeBetweenThem) {
  const OwnedStream stream;
  Event begin({}, Timing::yes), end({}, Timing::yes);
  begin.record(stream);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  end.record(stream);
  EXPECT_TRUE(end.done());
  EXPECT_GE(elapsed(begin, end), std::chrono::milliseconds(2));
  EXPECT_LT(elapsed(end, begin), Nanoseconds{});
}

TEST(CpuTwin, ThereIsNoTimeBetweenEventsThatAreNotForTiming) {
  Event begin({}, Timing::yes), end({});
  begin.record({});
  end.record({});
  EXPECT_THROW(elapsed(begin, end), Error);
  const Event never({}, Timing::yes);
  EXPECT_THROW(elapsed(begin, never), Error);
}

TEST(CpuTwin, CapturesNoGraphAndSaysSo) {
  bool ran = false;
  const Capture captured = capture({}, [&ran] { ran = true; });
  EXPECT_FALSE(captured.graph);
  EXPECT_EQ(captured.why, "the CPU captures no graphs");
  EXPECT_FALSE(ran);
}

TEST(CpuTwin, CopiesAndFills) {
  const Buffer buffer(64, "x", Stream{}, MemoryCategory::input);
  EXPECT_EQ(buffer.place(), (Place{Kind::cpu, 0}));
  fill_bytes(buffer.data(), 0x5a, 64, {});
  std::array<unsigned char, 64> there{};
  copy_now(there.data(), buffer.data(), 64, {});
  EXPECT_EQ(there[63], 0x5a);
  EXPECT_EQ(pointer_info(buffer.data()).place.kind, Kind::cpu);
  EXPECT_EQ(MemoryLog::global().events().back().category, MemoryCategory::input);
}

TEST(CpuTwin, HoldsNothingBackAndReadsNoClock) {
  Gate gate({});
  gate.close();
  gate.open();
  EXPECT_EQ(gate.expired(), 0U);
  SmClock clock({}, 2);
  clock.begin(0);
  clock.end(0);
  EXPECT_EQ(clock.read(), (std::vector<std::optional<double>>(2)));
  EXPECT_THROW(clock.begin(2), Error);
  const NvtxRange range("nothing");
}

// What an H200 gave while several processes shared it: a counter that had gone back, by which 1e19 Hz were told.
TEST(ClockRate, IsOfCountersThatWentForward) {
  using kernels::ClockStamp;
  const std::vector<ClockStamp> begin{{5'000'000, 1'000'000}, {9'000'000, 1'000'000}, {0, 1'000'000}, {7, 0}};
  const std::vector<ClockStamp> end{{6'800'000, 2'000'000}, {8'999'999, 2'000'000}, {1ULL << 60, 2'000'000}, {8, 1}};
  EXPECT_EQ(median_rate(begin, end), 1.8e9);
  EXPECT_EQ(median_rate(std::span(begin).subspan(1), std::span(end).subspan(1)), std::nullopt);
}

TEST(CpuTwin, KnowsItsMemory) {
  EXPECT_GT(memory_use({}).total, memory_use({}).free / 2);
  EXPECT_EQ(properties({}).name, "CPU");
  EXPECT_EQ(properties({}).memory_bytes, memory_use({}).total);
}

TEST(CpuTwin, MultipliesMatricesInBatches) {
  constexpr int kM = 3, kN = 4, kK = 5, kBatch = 2;
  std::vector<double> a(kBatch * kM * kK), b(kBatch * kN * kK), c(kBatch * kM * kN, -1.0);
  fill_random({a.data(), DType::f64, {kBatch, kM, kK}}, RandomStream(1), Distribution::normal, 1, 0, {});
  fill_random({b.data(), DType::f64, {kBatch, kN, kK}}, RandomStream(2), Distribution::normal, 1, 0, {});
  gemm({.m = kM,
        .n = kN,
        .k = kK,
        .transpose_b = true,
        .alpha = 2,
        .a = {a.data(), DType::f64, kK, kM * kK},
        .b = {b.data(), DType::f64, kK, kN * kK},
        .c = {c.data(), DType::f64, kN, kM * kN},
        .batch = kBatch},
       {});
  for (int i = 0; i < kBatch * kM * kN; ++i) {
    const int batch = i / (kM * kN), row = i / kN % kM, column = i % kN;
    double sum = 0;
    for (int p = 0; p < kK; ++p) {
      sum += a[static_cast<std::size_t>((batch * kM + row) * kK + p)] *
             b[static_cast<std::size_t>((batch * kN + column) * kK + p)];
    }
    EXPECT_NEAR(c[static_cast<std::size_t>(i)], 2 * sum, 1e-12);
  }
}

TEST(MatrixProduct, RefusesWhatNoLibraryHas) {
  std::vector<float> data(64);
  const auto product = [&](DType a, DType b, DType c, std::int64_t stride) {
    gemm({.m = 4,
          .n = 4,
          .k = 4,
          .a = {data.data(), a, stride, 0},
          .b = {data.data(), b, 4, 0},
          .c = {data.data(), c, 4, 0}},
         {});
  };
  EXPECT_THROW(product(DType::f32, DType::f16, DType::f32, 4), Error);
  EXPECT_THROW(product(DType::f64, DType::f64, DType::f32, 4), Error);
  EXPECT_THROW(product(DType::f32, DType::f32, DType::bf16, 4), Error);
  EXPECT_THROW(product(DType::f32, DType::f32, DType::f32, 3), Error);
  EXPECT_THROW(product(DType::bf16, DType::bf16, DType::f32, 4), Error) << "the host has no half-precision product";
}

TEST(Pattern, WordsDependOnTheirPositionWhereAPayloadIsGiven) {
  constexpr Pattern guard{.base = 0xffc0'0000, .payload = 0x3f'ffff};
  EXPECT_NE(word_of(guard, 0), word_of(guard, 1));
  EXPECT_NE(word_of(guard, -1), word_of(guard, 1));
  EXPECT_EQ(word_of({.base = 7}, 0), word_of({.base = 7}, 1));
}

TEST(Pattern, DifferencesAreCountedAndPlaced) {
  for (const std::size_t width : {1U, 2U, 4U, 8U}) {
    SCOPED_TRACE(width);
    constexpr Pattern pattern{.base = 0xffff'ffff'ffff'ff80, .payload = 0x3f};
    std::vector<std::byte> memory(100 * width);
    fill_pattern(memory.data(), pattern, width, -50, 100, {});
    EXPECT_EQ(count_differences(memory.data(), pattern, width, -50, 100, {}).words, 0);
    memory[13 * width] ^= std::byte{1};
    memory[90 * width + width - 1] ^= std::byte{128};
    const Differences found = count_differences(memory.data(), pattern, width, -50, 100, {});
    EXPECT_EQ(found.words, 2);
    EXPECT_EQ(found.first, 13);
    EXPECT_EQ(found.last, 90);
    EXPECT_GT(count_differences(memory.data(), pattern, width, -49, 100, {}).words, 90) << "positions shift words";
  }
  EXPECT_THROW(fill_pattern(nullptr, {}, 3, 0, 0, {}), Error);
}

TEST(Pattern, NansOfEveryDtypeAreCounted) {
  const std::vector<float> single = {0, -0.0F, std::numeric_limits<float>::infinity(),
                                     std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN()};
  EXPECT_EQ(count_nans(single.data(), DType::f32, 5, {}), 2);
  const std::vector<double> wide = {1, std::numeric_limits<double>::quiet_NaN(),
                                    -std::numeric_limits<double>::infinity()};
  EXPECT_EQ(count_nans(wide.data(), DType::f64, 3, {}), 1);
  const std::vector<std::uint16_t> half = {0x7c00, 0x7c01, 0xfe00, 0xfbff, 0x7f81};
  EXPECT_EQ(count_nans(half.data(), DType::f16, 5, {}), 3);
  EXPECT_EQ(count_nans(half.data(), DType::bf16, 5, {}), 1);
}

TEST(CudaError, TellsWhatWasAskedAndTheRemedy) {
  try {
    throw_cuda_error("launch kernel 'x'", "cudaLaunchKernel", "cudaErrorNoKernelImageForDevice", "no kernel image");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_EQ(error.call(), "cudaLaunchKernel");
    const std::string text = error.what();
    for (const char* part : {"launch kernel 'x'", "cudaErrorNoKernelImageForDevice", "-Dgpu_archs"}) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
  }
  EXPECT_FALSE(remedy_for("cudaErrorOfTomorrow").empty());
}

// Also true where the build has CUDA and the machine has no GPU.
TEST(CudaError, WithoutAGpuEveryWayInSaysWhatIsMissing) {
  if (gpu_count() > 0) GTEST_SKIP() << "there is a GPU";
  const Place gpu{Kind::cuda, 0};
  const auto refuses = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::device);
      EXPECT_FALSE(std::string(error.what()).empty());
      return true;
    }
    return false;
  };
  EXPECT_TRUE(refuses([&] { OwnedStream{gpu}; }));
  EXPECT_TRUE(refuses([&] { Event{gpu}; }));
  EXPECT_TRUE(refuses([&] { Buffer(8, "x", Stream{Kind::cuda, nullptr}); }));
  EXPECT_TRUE(refuses([&] { Buffer::pinned(8, "x", gpu); }));
  EXPECT_TRUE(refuses([&] { static_cast<void>(properties(gpu)); }));
  EXPECT_TRUE(refuses([&] { synchronize(gpu); }));
  float value = 0;
  EXPECT_TRUE(refuses([&] { fill_pattern(&value, {}, 4, 0, 1, {Kind::cuda, nullptr}); }));
  EXPECT_TRUE(refuses([&] {
    sgemm(false, false, 1, 1, 1, 1, &value, 1, &value, 1, 0, &value, 1, {Kind::cuda, nullptr});
  }));
  EXPECT_EQ(pointer_info(&value).place.kind, Kind::cpu);
}

}  // namespace
}  // namespace syslab::device
