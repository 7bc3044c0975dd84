#include <algorithm>
#include <thread>

#include "core/error.hpp"
#include "device/memory.hpp"
#include "measure/cuda_device.hpp"
#include "measure/sampler.hpp"
#include "stats/summary.hpp"
#include "tests/device/gpu_fixture.hpp"
#include "tests/device/gpu_work.hpp"

namespace syslab::measure {
namespace {

using namespace std::chrono_literals;

class GpuTiming : public device::GpuTest {
 protected:
  void SetUp() override {
    device::GpuTest::SetUp();
    if (IsSkipped()) return;
    gpu = std::make_unique<CudaDevice>(kGpu);
    device::spin(1000, gpu->stream());  // first call: the module is loaded
    gpu->synchronize();
  }
  Nanoseconds median_of_block(
      const std::function<void()>& work, const std::function<void()>& before = [] {}) {
    std::vector<Nanoseconds> times;
    for (int i = 0; i < 15; ++i) {
      before();
      gpu->queue_window(work);
    }
    for (const Window& window : gpu->collect()) times.push_back(window.elapsed);
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }
  std::unique_ptr<CudaDevice> gpu;
};

TEST_F(GpuTiming, AWindowHoldsTheWorkAndNotTheHostsPartInQueueingIt) {
  const Nanoseconds quick = median_of_block([&] { device::spin(300'000, gpu->stream()); });
  const Nanoseconds slow = median_of_block([&] {
    device::spin(150'000, gpu->stream());
    std::this_thread::sleep_for(2ms);
    device::spin(150'000, gpu->stream());
  });
  EXPECT_GE(quick, 299us);
  EXPECT_LT(quick, 315us);
  EXPECT_GE(slow, 299us);
  EXPECT_LT(slow, 320us) << "the host's sleep is in the window";
}

TEST_F(GpuTiming, EveryWindowTellsTheClockRateItHad) {
  for (int i = 0; i < 8; ++i) gpu->queue_window([&] { device::spin(300'000, gpu->stream()); });
  for (const Window& window : gpu->collect()) {
    ASSERT_TRUE(window.clock_hz);
    EXPECT_GT(*window.clock_hz, 0.2e9);
    EXPECT_LT(*window.clock_hz, 3e9);
    EXPECT_EQ(window.flags & kHostInWindow, 0);
  }
}

TEST_F(GpuTiming, WorkThatMakesTheHostWaitIsTimedAndFlagged) {
  for (int block = 0; block < 4; ++block) {
    for (int i = 0; i < 2; ++i) {
      gpu->queue_window([&] {
        device::spin(100'000, gpu->stream());
        device::synchronize(gpu->stream());
      });
    }
    for (const Window& window : gpu->collect()) {
      EXPECT_GE(window.elapsed, 100us);
      EXPECT_LT(window.elapsed, 30ms);
      EXPECT_NE(window.flags & kHostInWindow, 0);
    }
  }
}

TEST_F(GpuTiming, WorkOnASideStreamIsFoundOut) {
  const device::OwnedStream side(kGpu);
  const auto blocks = [&](int count) {
    for (int i = 0; i < count; ++i) {
      gpu->queue_window([&] {
        device::spin(50'000, gpu->stream());
        device::spin(5'000'000, side);
      });
      gpu->collect();
    }
  };
  try {
    blocks(10);
    FAIL() << "5 ms on a side stream passed for 50 us";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::check);
    EXPECT_NE(std::string(error.what()).find("stream of its own"), std::string::npos) << error.what();
  }
}

TEST_F(GpuTiming, WorkThatLeavesItsWindowEmptyIsFoundOut) {
  const device::OwnedStream side(kGpu);
  const auto ten_blocks_of = [&](const std::function<void()>& work) {
    for (int i = 0; i < 10; ++i) {
      gpu->queue_window(work);
      gpu->queue_window(work);
      gpu->collect();
    }
  };
  EXPECT_THROW(ten_blocks_of([&] {
                 device::spin(5'000, side);
                 device::synchronize(side);
               }),
               Error);
  std::printf("a window with nothing in it %.2f us, with an empty kernel %.2f us\n",
              median_of_block([] {}).count() / 1e3,
              median_of_block([&] { device::spin(0, gpu->stream()); }).count() / 1e3);
  // The shortest work there is on the right stream: a kernel that ends at once, copies and fills of a few bytes.
  EXPECT_NO_THROW(ten_blocks_of([&] { device::spin(0, gpu->stream()); }));
  const device::Buffer from(8192, "x", gpu->stream()), to(8192, "x", gpu->stream());
  for (const std::size_t bytes : {std::size_t{16}, from.bytes()}) {
    const auto copies = [&] { device::copy(to.data(), from.data(), bytes, gpu->stream()); };
    const auto fills = [&] { device::fill_bytes(to.data(), 1, bytes, gpu->stream()); };
    std::printf("with a copy of %zu bytes %.2f us, with a fill %.2f us\n", bytes, median_of_block(copies).count() / 1e3,
                median_of_block(fills).count() / 1e3);
    for (int again = 0; again < 50; ++again) {
      EXPECT_NO_THROW(ten_blocks_of(copies)) << bytes;
      EXPECT_NO_THROW(ten_blocks_of(fills)) << bytes;
    }
  }
}

TEST_F(GpuTiming, AFlushMakesTheCacheForget) {
  constexpr std::size_t kBytes = 8U << 20;
  const device::Buffer from(kBytes, "x", gpu->stream()), to(kBytes, "x", gpu->stream());
  const auto copy = [&] { device::copy(to.data(), from.data(), kBytes, gpu->stream()); };
  const Nanoseconds hot = median_of_block(copy);
  const Nanoseconds cold = median_of_block(copy, [&] { gpu->flush(2 * gpu->last_level_cache()); });
  RecordProperty("hot_ns", static_cast<int>(hot.count()));
  RecordProperty("cold_ns", static_cast<int>(cold.count()));
  EXPECT_GT(cold, hot + hot / 10);
}

TEST_F(GpuTiming, ShortCallsAreTimedAsAGraphOfMany) {
  Protocol protocol;
  protocol.warmup_time = 2ms;
  Subject subject;
  subject.call = [&](int) { device::spin(20'000, gpu->stream()); };
  const Samples samples = take_samples(protocol, subject, {*gpu}, 1, {});
  EXPECT_TRUE(samples.graphs);
  EXPECT_GE(samples.calls_per_sample, 8);
  const double median = stats::summarize(samples.seconds).median;
  EXPECT_GE(median, 20e-6);
  EXPECT_LT(median, 23e-6);
  EXPECT_EQ(samples.clocks_hz.size(), samples.seconds.size());
}

// For comparison with triton.testing.do_bench on the same copy (tools/peers/); here only that it works and repeats.
TEST_F(GpuTiming, DoBenchTimesACopyTwiceTheSame) {
  for (const std::size_t mebibytes : {4U, 64U, 256U}) {
    const std::size_t bytes = mebibytes << 20;
    const device::Buffer from(bytes, "x", gpu->stream()), to(bytes, "x", gpu->stream());
    Subject subject;
    const Protocol protocol = find_protocol("do_bench");
    subject.flush_bytes = protocol.flush_bytes;
    subject.call = [&](int) { device::copy(to.data(), from.data(), bytes, gpu->stream()); };
    double medians[2];
    for (double& median : medians) {
      const Samples samples = take_samples(protocol, subject, {*gpu}, 1, {});
      const stats::Summary summary = stats::summarize(samples.seconds);
      median = summary.median;
      std::printf("do_bench copy %zu MiB: n %d mean %.3f us median %.3f us\n", mebibytes, static_cast<int>(summary.n),
                  summary.mean * 1e6, summary.median * 1e6);
    }
    EXPECT_NEAR(medians[0] / medians[1], 1, 0.03);
  }
}

}  // namespace
}  // namespace syslab::measure
