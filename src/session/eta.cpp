#include "session/eta.hpp"

#include <algorithm>

namespace syslab::cli {

Eta::Eta(const plan::Plan& plan) {
  for (const plan::PlannedCase& planned : plan.cases) {
    if (!planned.skip_reason && planned.predicted_oom.empty()) waiting_.push_back(&planned);
  }
}

void Eta::finished(const plan::PlannedCase& planned, Seconds took) {
  const auto found = std::find(waiting_.begin(), waiting_.end(), &planned);
  if (found == waiting_.end()) return;  // skipped cases take no time and say nothing about others
  waiting_.erase(found);
  if (took.count() <= 0) return;  // left out
  Mean& mean = mean_of(planned);
  mean.total_seconds += took.count();
  ++mean.count;
}

std::optional<Nanoseconds> Eta::remaining(Seconds into_current) const {
  double seconds = 0;
  for (const plan::PlannedCase* planned : waiting_) {
    double expected = 0;
    const Mean& mean = means_[planned->task == plan::Task::law ? 1 : 0];
    if (planned->time_was_measured) {
      expected = Seconds(planned->predicted_time).count();
    } else if (mean.count > 0) {
      expected = mean.total_seconds / mean.count;
    } else if (!planned->predicted_from.empty()) {
      expected = Seconds(planned->predicted_time).count();
    } else {
      return std::nullopt;
    }
    if (planned == waiting_.front()) expected = std::max(0.0, expected - into_current.count());
    seconds += expected;
  }
  return std::chrono::duration_cast<Nanoseconds>(Seconds(seconds));
}

}  // namespace syslab::cli
