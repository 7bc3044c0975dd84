#include "runner/runner.hpp"

#include <map>

#include "runner/attempt.hpp"
#include "runner/budget.hpp"
#include "runner/interruption.hpp"
#include "runner/law_shares.hpp"
#include "runner/paired/side_by_side.hpp"
#include "runner/request.hpp"
#include "runner/workers.hpp"

namespace syslab::runner {

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
  LawShares shares(plan, options);
  FalsifiedLaws falsified(plan);
  std::map<std::string, const plan::PlannedCase*> last;  // of each implementation
  for (const plan::PlannedCase& planned : plan.cases) last[planned.implementation] = &planned;
  std::string stopped;  // why no other starts
  bool all = true;
  for (const plan::PlannedCase& planned : plan.cases) {
    if (interruption.signal() != 0) return false;
    const bool forbidden = is_tried(planned) && falsified.forbid(planned);
    const bool tried = is_tried(planned) && !forbidden;
    shares.give(planned, effective);
    std::string why = stopped;
    if (why.empty() && tried) why = budget.refusal(planned);
    if (!why.empty()) {
      all = false;
      if (observer.left_out) observer.left_out(planned, why);
      continue;
    }
    AttemptResult result = tried ? run_attempt(planned, request_for(planned, plan.mine, effective, effective.reproduce),
                                               effective, workers, observer, interruption)
                           : forbidden ? falsified.skipped(planned)
                                       : not_tried(planned);
    if (last.at(planned.implementation) == &planned) workers.give_up(planned.implementation);
    shares.took(result);
    falsified.note(result);
    const bool aborted = result.status == Status::aborted;
    if (options.stop_at_failure && is_failure(result.status)) stopped = "stopped at the first failure";
    if (observer.finished) observer.finished(std::move(result));
    if (aborted) return false;
  }
  return all;
}

}  // namespace syslab::runner
