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

FalsifiedLaws::FalsifiedLaws(const plan::Plan& plan) {
  for (const std::vector<plan::PlannedCase>* cases : {&plan.cases, &plan.falsified}) {
    for (const plan::PlannedCase& one : *cases) {
      if (plan::contract_of(one) == Contract::handout) handed_out_.insert({one.experiment->id, one.implementation});
    }
  }
  for (const plan::PlannedCase& law : plan.falsified) add(law);
}

void FalsifiedLaws::add(const plan::PlannedCase& law) {
  const std::optional<Contract> contract = plan::contract_of(law);
  if (contract != Contract::handout && handed_out_.contains({law.experiment->id, law.implementation})) return;
  laws_.try_emplace({law.experiment->id, law.implementation},
                    Law{law.law, contract ? std::string(to_string(*contract)) : std::string()});
}

void FalsifiedLaws::note(const AttemptResult& result) {
  if (result.planned->task == plan::Task::law && result.status == Status::check_failed) add(*result.planned);
}

const FalsifiedLaws::Law* FalsifiedLaws::of(const plan::PlannedCase& planned) const {
  if (planned.task == plan::Task::law) return nullptr;
  const auto found = laws_.find({planned.experiment->id, planned.implementation});
  return found == laws_.end() ? nullptr : &found->second;
}

AttemptResult FalsifiedLaws::skipped(const plan::PlannedCase& planned) const {
  const Law& law = *of(planned);
  AttemptResult result;
  result.planned = &planned;
  result.status = Status::skipped;
  result.detail = fmt::format("{} fails {}{}, and what is wrong gets no time; --laws none times it all the same",
                              planned.implementation, law.name,
                              law.contract.empty() ? std::string() : fmt::format(" ({})", law.contract));
  result.facts_json = json_text(Json{{"falsified_law", {{"name", law.name}, {"contract", law.contract}}}});
  result.started_at = result.ended_at = utc_now();
  return result;
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
