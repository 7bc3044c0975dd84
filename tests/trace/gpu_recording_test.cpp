// Kernels as CUPTI reports them: where they belong, alone and in a graph, and their times beside those of events.
#include <gtest/gtest.h>

#include "device/cuda/cublas.hpp"
#include "device/cuda/graph.hpp"
#include "device/cuda/nvtx.hpp"
#include "tests/device/gpu_fixture.hpp"
#include "trace/recording.hpp"

namespace syslab::trace {
namespace {

using device::NvtxRange;
using device::RangeKind;

constexpr std::int64_t kSize = 4096;
constexpr int kProducts = 20;

class GpuRecording : public device::GpuTest {
 protected:
  void SetUp() override {
    device::GpuTest::SetUp();
    if (IsSkipped()) return;
    if (const std::string why = device::why_no_cublas(); !why.empty()) GTEST_SKIP() << why;
    matrix_ = device::Buffer(3 * kSize * kSize * sizeof(float), "matrices", stream);
    device::fill_bytes(matrix_.data(), 0, matrix_.bytes(), stream);
    product();  // opens the library
    device::synchronize(stream);
  }
  void product() {
    auto* a = matrix_.as<float>();
    device::sgemm(false, false, kSize, kSize, kSize, 1.0F, a, kSize, a + kSize * kSize, kSize, 0.0F,
                  a + 2 * kSize * kSize, kSize, stream);
  }
  // Some tool may hold CUPTI: then there is nothing to be tested here.
  static bool by_cupti(const Trace& trace) { return trace.source == "CUPTI"; }

  device::Buffer matrix_;
};

double seconds_of_products(const Trace& trace) {
  Nanoseconds sum{};
  for (const Attributed& one : attribute(trace)) {
    if (one.belongs.operation == "gemm") sum += one.activity->end - one.activity->begin;
  }
  return Seconds(sum).count();
}

TEST_F(GpuRecording, KernelTimesAgreeWithEventsWithinTwoPercent) {
  const auto seconds_by = [&](Source source, bool& cupti) {
    Recording recording({device::Kind::cuda, 0}, source);
    for (int i = 0; i < kProducts; ++i) product();
    const Trace trace = recording.finish();
    cupti = by_cupti(trace);
    return seconds_of_products(trace);
  };
  bool by_library = false, ignored = false;
  const double kernels = seconds_by(Source::best, by_library);
  if (!by_library) GTEST_SKIP() << "CUPTI cannot be had here";
  const double events = seconds_by(Source::events, ignored);
  EXPECT_NEAR(kernels / events, 1.0, 0.02);
}

TEST_F(GpuRecording, AKernelBelongsToTheRangeThatQueuedIt) {
  Recording recording({device::Kind::cuda, 0});
  {
    const NvtxRange phase("forward", RangeKind::phase);
    product();
  }
  {
    const NvtxRange phase("backward", RangeKind::phase);
    product();
    product();
  }
  const Trace trace = recording.finish();
  if (!by_cupti(trace)) GTEST_SKIP() << trace.why;
  int forward = 0, backward = 0;
  for (const Attributed& one : attribute(trace)) {
    if (one.belongs.operation != "gemm") continue;
    forward += one.belongs.phase == "forward" ? 1 : 0;
    backward += one.belongs.phase == "backward" ? 1 : 0;
  }
  EXPECT_GE(forward, 1);
  EXPECT_EQ(backward, 2 * forward);
}

TEST_F(GpuRecording, AReplayedKernelBelongsWhereItWasCaptured) {
  Recording recording({device::Kind::cuda, 0});
  const device::Capture captured = device::capture(stream, [&] {
    const NvtxRange phase("forward", RangeKind::phase);
    product();
  });
  ASSERT_TRUE(captured.graph) << captured.why;
  const std::size_t first = recording.spans();
  {
    const NvtxRange launch("graph", RangeKind::kernel, stream, "replay");
    captured.graph->replay(stream);
  }
  const Trace trace = recording.finish();
  if (!by_cupti(trace)) GTEST_SKIP() << trace.why;
  const std::vector<Attributed> replayed = attribute(trace, first);
  ASSERT_FALSE(replayed.empty());
  for (const Attributed& one : replayed) {
    EXPECT_EQ(one.belongs.phase, "forward") << one.activity->name;
    EXPECT_EQ(one.belongs.operation, "gemm") << one.activity->name;
  }
}

TEST_F(GpuRecording, OnlyOneRecordingHasTheLibraryAtATime) {
  Recording first({device::Kind::cuda, 0});
  Recording second({device::Kind::cuda, 0});
  product();
  const Trace inner = second.finish();
  EXPECT_EQ(inner.source, "events");
  EXPECT_NE(inner.why, "");
  static_cast<void>(first.finish());
}

}  // namespace
}  // namespace syslab::trace
