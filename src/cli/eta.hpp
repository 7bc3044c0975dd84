// How long the rest of a plan will take.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "plan/plan.hpp"

namespace syslab::cli {

// What makes two attempts take alike long: case, implementation, and law.
std::string duration_key(std::string_view case_uid, std::string_view implementation, std::string_view law);
std::string duration_key(const plan::PlannedCase& planned);

// Durations of the same case from earlier runs, else the mean of what this run has done of the same task.
class Eta {
 public:
  Eta(const plan::Plan& plan, std::map<std::string, Seconds> stored);

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
  std::map<std::string, Seconds> stored_;
  Mean means_[2];
};

}  // namespace syslab::cli
