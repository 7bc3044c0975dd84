#include "runner/budget.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"

namespace syslab::runner {

bool is_tried(const plan::PlannedCase& planned) { return !planned.skip_reason && planned.predicted_oom.empty(); }

AttemptResult not_tried(const plan::PlannedCase& planned) {
  AttemptResult result;
  result.planned = &planned;
  result.status = planned.unsupported ? Status::unsupported : planned.skip_reason ? Status::skipped : Status::oom;
  result.detail = planned.skip_reason ? *planned.skip_reason : planned.predicted_oom;
  if (planned.needs) result.facts_json = json_text(Json{{"needs", to_json(*planned.needs)}});
  if (!planned.skip_reason)
    result.facts_json = json_text(Json{{"predicted", true}, {"device", to_string(planned.device)}});
  result.started_at = result.ended_at = utc_now();
  return result;
}

bool is_failure(Status status) {
  return status != Status::ok && status != Status::unsupported && status != Status::skipped;
}

std::string Budget::refusal(const plan::PlannedCase& planned) const {
  if (total_.count() <= 0) return {};
  const Nanoseconds left = total_ - (Clock::now() - began_);
  if (left.count() <= 0) return fmt::format("the budget of {} is used up", format_duration(total_));
  if (planned.predicted_time <= left) return {};
  return fmt::format("about {} ({}) do not fit into the {} left of the budget", format_duration(planned.predicted_time),
                     planned.predicted_from, format_duration(left));
}

}  // namespace syslab::runner
