// Time that passes, without what was spent waiting for a processor that others had: how far a search comes in its time
// must not depend on who else uses the machine.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>

#include "core/process/process_stat.hpp"
#include "core/text/units.hpp"

namespace syslab::worker {

class OwnTime {
 public:
  // Of this thread and of the process that it asks and waits for: `asked` is its pid now, 0 where there is none.
  explicit OwnTime(std::function<pid_t()> asked);

  // Since this was made; never less than both have computed, since one may wait while the other does. Where the system
  // does not tell of waiting, all of it counts.
  Nanoseconds spent();

 private:
  void look_at_asked();

  std::function<pid_t()> asked_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  ProcessorTimes own_before_;
  pid_t pid_ = 0;
  ProcessorTimes last_, of_asked_;  // of the process asked last, and of all together since the beginning
};

}  // namespace syslab::worker
