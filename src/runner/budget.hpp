// Which cases of a plan are tried, and what is left of the time for all.
#pragma once

#include <string>

#include "runner/runner.hpp"
#include "runner/worker_process.hpp"

namespace syslab::runner {

// Not one that is skipped, or asks for more than the machine has, or is predicted to run out of memory.
bool is_tried(const plan::PlannedCase& planned);
AttemptResult not_tried(const plan::PlannedCase& planned);
bool is_failure(Status status);

// The remaining time of the plan, from its making on.
class Budget {
 public:
  explicit Budget(Nanoseconds total) : total_(total) {}

  // Why the case cannot start; empty: it can.
  std::string refusal(const plan::PlannedCase& planned) const;

 private:
  Nanoseconds total_;
  Clock::time_point began_ = Clock::now();
};

}  // namespace syslab::runner
