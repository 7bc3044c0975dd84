// Host time and waiting. Interfaces, so that tests need not wait.
#pragma once

#include "core/text/units.hpp"

namespace syslab::measure {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Nanoseconds now() = 0;  // monotonic
};

class Sleeper {
 public:
  virtual ~Sleeper() = default;
  virtual void sleep(Nanoseconds duration) = 0;
};

Clock& steady_clock();  // CLOCK_MONOTONIC
Sleeper& thread_sleeper();

}  // namespace syslab::measure
