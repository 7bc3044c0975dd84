// What is timed: a call on one of several input sets, and the work before and after it on a set.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "core/text/units.hpp"
#include "measure/device.hpp"

namespace syslab::measure {

struct Subject {
  int sets = 1;
  std::uint64_t flush_bytes = 0;  // written over before each sample; 0: rotating over the sets is enough, or not wanted
  // Runs the implementation once on input set `set` in [0, sets), or queues it on the device.
  std::function<void(int set)> call;
  // Outside the timed window: gives the set new content. May be empty.
  std::function<void(int set)> refresh;
  // Adds sets until there are `wanted`, or as many as there may be; says how many there are. Empty: there are `sets`,
  // and calls that are timed together may share one.
  std::function<int(int wanted)> grow;
  // Outside the window and the budgets, after the device has finished: looks at the outputs that timed calls left on
  // these sets, all of them, and throws if something is wrong. May be empty.
  std::function<void(std::span<const int> sets)> look;
  // There, too: compares the outputs that the last call on `set` left with what they should be, and throws if they are
  // wrong; false if it chose not to. May be empty.
  std::function<bool(int set)> verify;
  // The same, and compares however long that takes. Empty: `verify` does for it, too.
  std::function<bool(int set)> verify_anyway;
  // Of the timed calls that are verified, instead of the protocol's share.
  std::optional<double> verify_share;
  // Time of the last call by the implementation's own clock, for those in another process; empty for ours.
  std::function<Nanoseconds()> self_time;
  // The number that it reports for that call, in seconds, where it reports one: `self_time` is then what the call took,
  // for planning, and may be something else. It may be below a nanosecond. May be empty.
  std::function<double()> self_told;
  // Of that call besides, as far as it is known: clock rate and flags. May be empty.
  std::function<Window()> self_state;
  bool self_graphs = false;  // and it is captured as a graph there
};

}  // namespace syslab::measure
