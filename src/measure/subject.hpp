// What is timed: a call on one of several input sets, and the work before and after it on a set.
#pragma once

#include <cstdint>
#include <functional>

#include "core/units.hpp"

namespace syslab::measure {

struct Subject {
  int sets = 1;
  std::uint64_t flush_bytes = 0;  // written over before each sample; 0: rotating over the sets is enough, or not wanted
  // Runs the implementation once on input set `set` in [0, sets), or queues it on the device.
  std::function<void(int set)> call;
  // Outside the timed window: gives the set new content. May be empty.
  std::function<void(int set)> refresh;
  // Outside the window and the budgets, after the device has finished: checks the outputs that the last call on `set`
  // left, and throws if they are wrong; false if it chose not to look. May be empty.
  std::function<bool(int set)> verify;
  // The same, and chooses to look however long that takes. Empty: `verify` does for it, too.
  std::function<bool(int set)> verify_anyway;
  // Time of the last call by the implementation's own clock, for those in another process; empty for ours.
  std::function<Nanoseconds()> self_time;
};

}  // namespace syslab::measure
