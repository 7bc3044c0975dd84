#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "core/error.hpp"
#include "measure/device.hpp"
#include "measure/rig.hpp"
#include "tests/measure/fake_device.hpp"

namespace syslab::measure {
namespace {

using std::chrono::milliseconds;

TEST(HostDevice, TimesAWindowByItsClock) {
  FakeClock clock;
  const auto device = make_host_device(clock);
  clock.advance(milliseconds(5));
  device->queue_window([&] { clock.advance(milliseconds(3)); });
  clock.advance(milliseconds(5));
  const std::vector<Window> windows = device->collect();
  ASSERT_EQ(windows.size(), 1U);
  EXPECT_EQ(windows[0].elapsed, milliseconds(3));
  EXPECT_FALSE(windows[0].clock_hz.has_value());
  EXPECT_TRUE(device->collect().empty());
}

// What a flush is for: a buffer that lay in the caches takes clearly longer to read after one.
TEST(HostDevice, AFlushMakesTheCachesForget) {
  const auto device = make_host_device();
  std::vector<std::uint64_t> data((256U << 10) / sizeof(std::uint64_t), 1);  // fits the private caches
  std::uint64_t sum = 0;
  const auto read = [&] {
    device->queue_window([&] {
      for (std::size_t i = 0; i < data.size(); i += 8) sum += data[i];
    });
    return Seconds(device->collect().front().elapsed).count();
  };
  std::vector<double> hot, cold;
  for (int i = 0; i < 15; ++i) {
    read();
    hot.push_back(read());
    device->flush(2 * device->last_level_cache());
    cold.push_back(read());
  }
  std::sort(hot.begin(), hot.end());
  std::sort(cold.begin(), cold.end());
  EXPECT_GT(cold[7], 1.5 * hot[7]) << sum;
}

TEST(HostDevice, CapturesNothingAndTheProtocolSaysWhatToUse) {
  const auto device = make_host_device();
  EXPECT_FALSE(device->captures_graphs());
  const Captured captured = device->capture([] {});
  EXPECT_EQ(captured.graph, nullptr);
  EXPECT_EQ(captured.why, "CPU captures no graphs");
  try {
    require_launch(find_protocol("graph"), *device, false);
    FAIL() << "accepted";
  } catch (const Unsupported& unsupported) {
    EXPECT_NE(std::string(unsupported.what()).find("--protocol kernel"), std::string::npos) << unsupported.what();
    EXPECT_NE(std::string(unsupported.what()).find("GPU"), std::string::npos);
  }
  EXPECT_NO_THROW(require_launch(find_protocol("kernel"), *device, true));
  EXPECT_THROW(require_launch(find_protocol("graph"), *device, true), Unsupported);
  EXPECT_NO_THROW(require_launch(find_protocol("graph"), *device, true, true)) << "it captures them itself";
}

TEST(HostDevice, HasALastLevelCacheOfAPlausibleSize) {
  EXPECT_GE(host_last_level_cache(), 256U << 10);
  EXPECT_LE(host_last_level_cache(), 4ULL << 30);
}

}  // namespace
}  // namespace syslab::measure
