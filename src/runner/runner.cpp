#include "runner/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "runner/attempt.hpp"
#include "runner/interruption.hpp"

namespace syslab::runner {
namespace {

// This very binary, even if a build has replaced its file meanwhile: then the link names a file that is gone, but can
// still be executed itself.
std::string own_binary() {
  const std::filesystem::path link = "/proc/self/exe";
  std::error_code failed;
  const std::filesystem::path target = std::filesystem::read_symlink(link, failed);
  return failed || !std::filesystem::exists(target) ? link.string() : target.string();
}

worker::CaseRequest request_for(const plan::Plan& plan, const plan::PlannedCase& planned, const RunOptions& options) {
  worker::CaseRequest request;
  request.experiment = planned.experiment->id;
  request.params = planned.params;
  request.implementation = planned.implementation;
  request.seed = planned.seed;
  request.case_uid = planned.case_uid;
  request.world_size = planned.world_size;
  request.task = planned.task == plan::Task::law ? "law" : "measure";
  request.law = planned.law;
  if (planned.task == plan::Task::law) request.reproduce = options.reproduce;
  request.protocol = options.protocol;
  request.data = options.data;
  request.law_cases = options.law_cases;
  request.memory_limit_bytes = options.memory_limit_bytes;
  const auto mine = std::find_if(plan.mine.begin(), plan.mine.end(),
                                 [&](const plan::MineSpec& spec) { return spec.name == planned.implementation; });
  if (mine != plan.mine.end()) {
    request.mine = worker::MineRequest{mine->name, mine->path, mine->python_class, mine->digest};
  }
  return request;
}

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
  if (effective.worker_command.empty()) effective.worker_command = {own_binary(), "worker"};
  const Interruption interruption;
  for (const plan::PlannedCase& planned : plan.cases) {
    if (interruption.signal() != 0) return false;
    AttemptResult result = planned.skip_reason ? skipped(planned)
                                               : run_attempt(planned, request_for(plan, planned, effective), effective,
                                                             observer, interruption);
    const bool aborted = result.status == worker::Status::aborted;
    if (observer.finished) observer.finished(std::move(result));
    if (aborted) return false;
  }
  return true;
}

}  // namespace syslab::runner
