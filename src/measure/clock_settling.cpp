#include "measure/clock_settling.hpp"

#include <cmath>

namespace syslab::measure {

void ClockSettling::take(Nanoseconds now, std::optional<double> hz) {
  last_ = now;
  if (hz) readings_.push_back(*hz);
}

bool ClockSettling::settled() const {
  if (!knows()) return false;
  const auto last = readings_.rbegin();
  const double now = last[0] + last[1], before = last[2] + last[3];
  return std::abs(now - before) <= kWithin * before;
}

}  // namespace syslab::measure
