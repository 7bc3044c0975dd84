// How long the rest of a plan will take.
#pragma once

#include <optional>
#include <vector>

#include "core/text/units.hpp"
#include "plan/plan.hpp"

namespace syslab::cli {

// Uses the plan's predictions if they come from measurements; otherwise the mean of this run's cases of the same task,
// otherwise the plan's estimates.
class Eta {
 public:
  explicit Eta(const plan::Plan& plan);

  void finished(const plan::PlannedCase& planned, Seconds took);
  // Time for the unfinished cases; nothing while it cannot be estimated. `into_current`: time already spent on the
  // running one.
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
