#include "measure/clock.hpp"

#include <chrono>
#include <thread>

namespace syslab::measure {
namespace {

class SteadyClock final : public Clock {
 public:
  Nanoseconds now() override { return std::chrono::steady_clock::now().time_since_epoch(); }
};

class ThreadSleeper final : public Sleeper {
 public:
  void sleep(Nanoseconds duration) override { std::this_thread::sleep_for(duration); }
};

}  // namespace

Clock& steady_clock() {
  static SteadyClock clock;
  return clock;
}

Sleeper& thread_sleeper() {
  static ThreadSleeper sleeper;
  return sleeper;
}

}  // namespace syslab::measure
