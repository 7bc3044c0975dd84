#include "core/process/watchdog.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace syslab {
namespace {

using namespace std::chrono_literals;

TEST(Watchdog, ActsOnceItsTimeIsOver) {
  std::atomic<int> times = 0;
  const Watchdog watchdog(1ms, [&] { ++times; });
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (times == 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(times, 1);
}

TEST(Watchdog, DoesNothingIfItEndsBefore) {
  std::atomic<int> times = 0;
  const auto began = std::chrono::steady_clock::now();
  {
    const Watchdog watchdog(1h, [&] { ++times; });
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 60s);
  EXPECT_EQ(times, 0);
}

}  // namespace
}  // namespace syslab
