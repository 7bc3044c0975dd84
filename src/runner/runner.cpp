#include "runner/runner.hpp"

#include <algorithm>
#include <map>

#include "runner/attempt.hpp"
#include "runner/budget.hpp"
#include "runner/interruption.hpp"
#include "runner/request.hpp"
#include "runner/side_by_side.hpp"
#include "runner/workers.hpp"

namespace syslab::runner {

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
  if (effective.jobs > 1) return run_side_by_side(plan, effective, observer, interruption);
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
    const bool tried = is_tried(planned);
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
