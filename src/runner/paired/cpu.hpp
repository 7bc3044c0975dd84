// Processor time of another process group: verifies that the side not in turn is idle.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <vector>

#include "core/text/units.hpp"

namespace syslab::runner {

class GroupCpuClock {
 public:
  // Its members as of now: a worker and what it has started (a Python class).
  explicit GroupCpuClock(pid_t group);
  // What they have used together so far. A member that has ended counts for nothing from then on.
  Nanoseconds used() const;

 private:
  std::vector<clockid_t> clocks_;
};

}  // namespace syslab::runner
