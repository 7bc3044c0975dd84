#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "cli/selection.hpp"
#include "cli/session.hpp"
#include "cli/stored_case.hpp"
#include "cli/verbs.hpp"
#include "core/build_info.hpp"
#include "core/error.hpp"

namespace syslab::cli {
namespace {

// Never finished, or cut short; with `failed`, also what may end otherwise when tried again.
bool is_missing(const store::PlanState& state, bool failed) {
  if (!state.last_status || *state.last_status == worker::Status::aborted) return true;
  switch (*state.last_status) {
    case worker::Status::check_failed:
    case worker::Status::oom:
    case worker::Status::timeout:
    case worker::Status::crashed:
    case worker::Status::error:
      return failed;
    default:
      return false;
  }
}

store::StoredRun find_run(const store::Store& store, const std::string& name) {
  const std::optional<store::StoredRun> run = store.find_run(name);
  if (run) return *run;
  throw Error(ErrorKind::usage, name == "latest"
                                    ? std::string("this database holds no run; `syslab run NAME` makes one")
                                    : fmt::format("no run '{}' in this database; syslab query 'SELECT run_uid, label, "
                                                  "started_at FROM v_run' shows them",
                                                  name));
}

}  // namespace

Exit execute(const Context& context, const ResumeOptions& options) {
  require_database(context);
  store::Store store = open_for_writing(context);
  const store::StoredRun run = find_run(store, options.run);
  // One run, one build: numbers of another revision would pass for this one's.
  if (run.build_sha != build_info().git_sha) {
    throw Error(ErrorKind::usage,
                fmt::format("run {} was made by revision {}, this is {}; build that revision, or make "
                            "a new run",
                            run.uid, run.build_sha, build_info().git_sha));
  }
  plan::Plan missing;
  std::int64_t planned = 0;
  Exit before = Exit::well;  // of what stays as it was
  for (const store::PlanState& state : store.plan_state(run.id)) {
    ++planned;
    const plan::PlannedCase again = planned_case(context.registry, state.plan);
    if (!is_missing(state, options.failed)) {
      before = worse(before, exit_of(*state.last_status, again.experiment->oom_is_an_answer));
      continue;
    }
    add_mine(missing, state.plan.implementation);
    missing.cases.push_back(again);
  }
  if (missing.cases.empty()) {
    if (context.console.json()) {
      context.console.print_line({{"type", "summary"}, {"run", run.uid}, {"missing", 0}, {"exit", int(before)}});
    } else if (!context.console.quiet()) {
      context.console.print(
          fmt::format("run {}: all of {} finished; nothing to resume\n", run.uid, counted(planned, "case")));
    }
    return before;
  }
  if (const auto writer = store.writer_at_work(run.id)) {  // two at once would do each case twice
    throw Error(ErrorKind::usage,
                fmt::format("run {} is still being run by {}; wait until it ends, or stop it", run.uid, *writer));
  }
  const Conditions conditions = conditions_from_json(run.protocol_json);
  return worse(before, run_and_store(context, store, run.id, missing, conditions));
}

}  // namespace syslab::cli
