#include "runner/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json_text.hpp"
#include "runner/attempt.hpp"
#include "runner/interruption.hpp"
#include "runner/request.hpp"
#include "runner/workers.hpp"

namespace syslab::runner {
namespace {

AttemptResult not_tried(const plan::PlannedCase& planned) {
  AttemptResult result;
  result.planned = &planned;
  result.status = planned.unsupported   ? worker::Status::unsupported
                  : planned.skip_reason ? worker::Status::skipped
                                        : worker::Status::oom;
  result.detail = planned.skip_reason ? *planned.skip_reason : planned.predicted_oom;
  if (!planned.skip_reason) result.facts_json = json_text(Json{{"predicted", true}, {"device", planned.device}});
  result.started_at = result.ended_at = utc_now();
  return result;
}

// The remaining time of the plan.
class Budget {
 public:
  explicit Budget(Nanoseconds total) : total_(total) {}

  // Why the case cannot start; empty: it can.
  std::string refusal(const plan::PlannedCase& planned) const {
    if (total_.count() <= 0) return {};
    const Nanoseconds left = total_ - (Clock::now() - began_);
    if (left.count() <= 0) return fmt::format("the budget of {} is used up", format_duration(total_));
    if (planned.predicted_time <= left) return {};
    return fmt::format("about {} ({}) do not fit into the {} left of the budget",
                       format_duration(planned.predicted_time), planned.predicted_from, format_duration(left));
  }

 private:
  Nanoseconds total_;
  Clock::time_point began_ = Clock::now();
};

bool is_failure(worker::Status status) {
  return status != worker::Status::ok && status != worker::Status::unsupported && status != worker::Status::skipped;
}

}  // namespace

Nanoseconds law_time_of(Clock::time_point end, Clock::time_point now, std::int64_t laws_left) {
  return std::max(Nanoseconds(end - now) / std::max<std::int64_t>(laws_left, 1), Nanoseconds{});
}

bool run_plan(const plan::Plan& plan, const RunOptions& options, const Observer& observer) {
  return run_plan(plan, options, observer, Interruption());
}

bool run_plan(const plan::Plan& plan, const RunOptions& options, const Observer& observer,
              const Interruption& interruption) {
  RunOptions effective = options;
  if (effective.worker_command.empty()) effective.worker_command = own_worker_command();
  const Budget budget(options.budget);
  Workers workers(effective);
  const Clock::time_point end = Clock::now() + options.until;
  std::int64_t laws = std::ranges::count(plan.cases, plan::Task::law, &plan::PlannedCase::task);
  std::map<std::string, const plan::PlannedCase*> last;  // of each implementation
  for (const plan::PlannedCase& planned : plan.cases) last[planned.implementation] = &planned;
  std::string stopped;  // why no other starts
  bool all = true;
  for (const plan::PlannedCase& planned : plan.cases) {
    if (interruption.signal() != 0) return false;
    const bool tried = !planned.skip_reason && planned.predicted_oom.empty();
    if (options.until.count() > 0 && planned.task == plan::Task::law) {
      effective.law_time = law_time_of(end, Clock::now(), laws--);
    }
    std::string why = stopped;
    if (why.empty() && tried) why = budget.refusal(planned);
    if (!why.empty()) {
      all = false;
      if (observer.left_out) observer.left_out(planned, why);
      continue;
    }
    AttemptResult result = tried ? run_attempt(planned, request_for(planned, plan.mine, effective, effective.reproduce),
                                               effective, workers, observer, interruption)
                                 : not_tried(planned);
    if (last.at(planned.implementation) == &planned) workers.give_up(planned.implementation);
    const bool aborted = result.status == worker::Status::aborted;
    if (options.stop_at_failure && is_failure(result.status)) stopped = "stopped at the first failure";
    if (observer.finished) observer.finished(std::move(result));
    if (aborted) return false;
  }
  return all;
}

}  // namespace syslab::runner
