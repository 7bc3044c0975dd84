// Time that passes, without what was spent waiting for a processor that others had: how far a search comes in its time
// must not depend on who else uses the machine.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>

#include "core/units.hpp"

namespace syslab::worker {

class OwnTime {
 public:
  // Of this thread and of the process that it asks and waits for: `asked` is its pid now, 0 where there is none.
  explicit OwnTime(std::function<pid_t()> asked);

  // Since this was made. Where the system does not tell of waiting, all of it counts.
  Nanoseconds spent();

 private:
  Nanoseconds waited_of_asked();

  std::function<pid_t()> asked_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  Nanoseconds own_before_{};
  pid_t pid_ = 0;
  Nanoseconds last_{}, waited_{};  // of the process asked last, and of all together
};

}  // namespace syslab::worker
