// How long the rest of a plan will take.
#pragma once

#include <optional>
#include <vector>

#include "core/units.hpp"
#include "plan/plan.hpp"

namespace syslab::cli {

// The plan's predictions where they are measured; else the mean of what this run has done of the same task, else what
// the plan estimates.
class Eta {
 public:
  explicit Eta(const plan::Plan& plan);

  void finished(const plan::PlannedCase& planned, Seconds took);
  // Of the cases not finished yet; nothing while there is no ground for a guess. `into_current`: time already spent on
  // the running one.
  std::optional<Nanoseconds> remaining(Seconds into_current) const;

 private:
  struct Mean {
    double total_seconds = 0;
    int count = 0;
  };
  Mean& mean_of(const plan::PlannedCase& planned) { return means_[planned.task == plan::Task::law ? 1 : 0]; }

  std::vector<const plan::PlannedCase*> waiting_;  // the next first
  Mean means_[2];
};

}  // namespace syslab::cli
