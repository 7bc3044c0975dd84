#include "cli/eta.hpp"

#include <algorithm>

namespace syslab::cli {

std::string duration_key(std::string_view case_uid, std::string_view implementation, std::string_view law) {
  std::string key(case_uid);
  for (const std::string_view part : {implementation, law}) key.append("|").append(part);
  return key;
}

std::string duration_key(const plan::PlannedCase& planned) {
  return duration_key(planned.case_uid, planned.implementation, planned.law);
}

Eta::Eta(const plan::Plan& plan, std::map<std::string, Seconds> stored) : stored_(std::move(stored)) {
  for (const plan::PlannedCase& planned : plan.cases) {
    if (!planned.skip_reason) waiting_.push_back(&planned);
  }
}

void Eta::finished(const plan::PlannedCase& planned, Seconds took) {
  const auto found = std::find(waiting_.begin(), waiting_.end(), &planned);
  if (found == waiting_.end()) return;  // skipped cases take no time and teach nothing
  waiting_.erase(found);
  Mean& mean = mean_of(planned);
  mean.total_seconds += took.count();
  ++mean.count;
}

std::optional<Nanoseconds> Eta::remaining(Seconds into_current) const {
  double seconds = 0;
  for (const plan::PlannedCase* planned : waiting_) {
    double expected = 0;
    const Mean& mean = means_[planned->task == plan::Task::law ? 1 : 0];
    if (const auto known = stored_.find(duration_key(*planned)); known != stored_.end()) {
      expected = known->second.count();
    } else if (mean.count > 0) {
      expected = mean.total_seconds / mean.count;
    } else {
      return std::nullopt;
    }
    if (planned == waiting_.front()) expected = std::max(0.0, expected - into_current.count());
    seconds += expected;
  }
  return std::chrono::duration_cast<Nanoseconds>(Seconds(seconds));
}

}  // namespace syslab::cli
