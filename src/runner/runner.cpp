#include "runner/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "runner/attempt.hpp"
#include "runner/interruption.hpp"
#include "runner/request.hpp"

namespace syslab::runner {
namespace {

AttemptResult skipped(const plan::PlannedCase& planned) {
  AttemptResult result;
  result.planned = &planned;
  result.status = worker::Status::skipped;
  result.detail = *planned.skip_reason;
  result.started_at = result.ended_at = utc_now();
  return result;
}

}  // namespace

bool run_plan(const plan::Plan& plan, const RunOptions& options, const Observer& observer) {
  RunOptions effective = options;
  if (effective.worker_command.empty()) effective.worker_command = own_worker_command();
  const Interruption interruption;
  for (const plan::PlannedCase& planned : plan.cases) {
    if (interruption.signal() != 0) return false;
    AttemptResult result = planned.skip_reason ? skipped(planned)
                                               : run_attempt(planned, request_for(planned, plan.mine, effective),
                                                             effective, observer, interruption);
    const bool aborted = result.status == worker::Status::aborted;
    if (observer.finished) observer.finished(std::move(result));
    if (aborted) return false;
  }
  return true;
}

}  // namespace syslab::runner
