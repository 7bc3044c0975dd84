#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/verbs/verbs.hpp"
#include "core/build_info.hpp"
#include "core/error.hpp"
#include "core/process/environment_variable.hpp"
#include "core/text/json_text.hpp"
#include "core/text/text.hpp"
#include "session/selection.hpp"
#include "session/session.hpp"
#include "session/stored_case.hpp"
#include "session/stored_object.hpp"
#include "session/stored_run.hpp"
#include "session/this_machine.hpp"
#include "store/cells.hpp"
#include "worker/judged/python_probe.hpp"

namespace syslab::cli {
namespace {

// Cases never finished, or cut short; with `failed`, also those that may end otherwise when tried again; with
// `try_oom`, of these only the ones that ran out of memory, predicted or found.
bool is_missing(const store::PlanState& state, bool failed, bool try_oom) {
  if (!state.last_status || *state.last_status == Status::aborted) return true;
  switch (*state.last_status) {
    case Status::oom:
      return failed || try_oom;
    case Status::check_failed:
    case Status::timeout:
    case Status::crashed:
    case Status::error:
      return failed;
    default:
      return false;
  }
}

// One run has one build: otherwise numbers of other code would pass for this one's. If the tree has changes, they
// count, too.
// "revision 1234, this is 5678"; empty: the same.
std::string difference_of_builds(const store::Store& store, const store::StoredRun& run) {
  const BuildInfo& here = build_info();
  if (run.build_sha != here.git_sha) return fmt::format("revision {}, this is {}", run.build_sha, here.git_sha);
  const store::ResultSet found = store.query(
      "SELECT b.facts FROM run r JOIN build b ON b.id = r.build_id WHERE r.uid = ?1", {store::text_cell(run.uid)});
  const StoredObject there("build.facts", found.rows.empty() ? "{}" : found.rows[0][0].text);
  const std::string diff = there.value("git_diff", std::string());
  if (diff == here.git_diff && there.value("git_dirty", false) == here.git_dirty) return {};
  const auto tree = [](const std::string& changes) {
    return changes.empty() ? std::string("no known changes") : "changes " + changes.substr(0, 12);
  };
  return fmt::format("revision {} with {}, this has {}", here.git_sha.substr(0, 12), tree(diff), tree(here.git_diff));
}

// Only what `run` and `check` plan can be finished case by case.
void require_resumable(const store::StoredRun& run) {
  if (run.verb == "run" || run.verb == "check") return;
  throw Error(
      ErrorKind::usage,
      run.verb == "import"
          ? fmt::format("run {} was measured by another program and imported; only that program can go on", run.uid)
          : fmt::format("run {} is of `{}`, whose launches count only together; make a new one", run.uid, run.verb));
}

bool has_missing(const store::Store& store, const store::StoredRun& run, const ResumeOptions& options) {
  return std::ranges::any_of(store.plan_state(run.id), [&](const store::PlanState& state) {
    return is_missing(state, options.failed, options.try_oom);
  });
}

// The run that is named, else the newest that can be resumed, else the newest, which then says why it cannot.
store::StoredRun find_run(const Context& context, const store::Store& store, const ResumeOptions& options) {
  if (!options.run.empty() && options.run != "latest") return find_run_or_pin(store, options.run);
  warn_of_future_runs(context, store);
  const std::optional<store::StoredRun> newest = store.find_run("latest");
  if (!newest) throw Error(ErrorKind::usage, "this database holds no run; `syslab run NAME` makes one");
  if (options.run == "latest") return *newest;
  std::optional<store::StoredRun> refused;  // the newest with something missing that cannot be resumed now
  for (const auto& row : store
                             .query("SELECT run_uid FROM v_run_order WHERE verb IN ('run', 'check') "
                                    "ORDER BY run_order DESC, run_uid DESC")
                             .rows) {
    const std::optional<store::StoredRun> run = store.find_run(row[0].text);
    if (!has_missing(store, *run, options)) continue;
    const bool other_build = !options.force && !difference_of_builds(store, *run).empty();
    if (!other_build && !store.writer_at_work(run->id)) {
      if (run->uid != newest->uid) context.console.note(fmt::format("resuming run {}", run->uid));
      return *run;
    }
    if (!refused) refused = run;
  }
  return refused.value_or(*newest);
}

// What Slurm and LSF say to a job that they start again: it keeps its number. Each task of arrays has one. PBS says
// nothing, but the number of a batch job comes back with nothing else than the job. (In an interactive one a person may
// want the same command anew.)
bool may_be_requeued() {
  const std::string restarts = environment_variable("SLURM_RESTART_COUNT");
  const bool batch_of_pbs =
      environment_variable("PBS_ENVIRONMENT") == "PBS_BATCH" && !environment_variable("PBS_JOBID").empty();
  return (!restarts.empty() && restarts != "0") || environment_variable("LSB_RESTART") == "Y" || batch_of_pbs;
}

// Runs of this command line that were made here, by the job of these numbers.
constexpr const char* kOfThisJob = R"(
SELECT r.uid FROM run r JOIN environment e ON e.id = r.environment_id
 WHERE r.verb = 'run' AND r.argv = ?1 AND r.uid NOT IN (SELECT run_uid FROM arrival)
   AND coalesce(e.facts ->> '$.env.SLURM_JOB_ID', '') = ?2
   AND coalesce(e.facts ->> '$.env.LSB_JOBID', '') = ?3 AND coalesce(e.facts ->> '$.env.LSB_JOBINDEX', '') = ?4
   AND coalesce(e.facts ->> '$.env.PBS_JOBID', '') = ?5
 ORDER BY r.started_at DESC, r.uid DESC)";

// What this machine cannot run of it.
void skip_here(const Context& context, plan::Plan& missing) {
  const auto there = [](const plan::PlannedCase& planned) { return planned.device == DeviceKind::cuda; };
  missing.machine = machine_of(context, std::ranges::any_of(missing.cases, there));
  for (plan::PlannedCase& again : missing.cases) {
    if (again.skip_reason) {
      plan::skip_again(again, missing.machine);
    } else if (context.places != nullptr) {
      plan::note_too_many_ranks(again, missing.machine);
    }
  }
}

}  // namespace

std::optional<std::string> begun_before_requeue(const Context& context) {
  std::error_code none;
  if (!may_be_requeued() || !std::filesystem::exists(context.global.database, none)) return std::nullopt;
  const store::Store store = open_for_writing(context);  // which closes what was cut off
  std::vector<store::Cell> said;
  for (const std::string& text :
       {json_text(Json(command_words(context))), environment_variable("SLURM_JOB_ID"),
        environment_variable("LSB_JOBID"), environment_variable("LSB_JOBINDEX"), environment_variable("PBS_JOBID")}) {
    said.push_back(store::text_cell(text));
  }
  for (const auto& row : store.query(kOfThisJob, said).rows) {
    const std::optional<store::StoredRun> run = store.find_run(row[0].text);
    // Another step of the job may be at work on it: it has a command line like ours.
    if (store.writer_at_work(run->id)) continue;
    if (has_missing(store, *run, {}) && difference_of_builds(store, *run).empty()) return run->uid;
  }
  return std::nullopt;
}

Exit execute(const Context& context, const ResumeOptions& options) {
  require_database(context);
  worker::choose_python_interpreter(options.python);
  store::Store store = open_for_writing(context);
  const store::StoredRun run = find_run(context, store, options);
  require_resumable(run);
  const std::string other_build = difference_of_builds(store, run);
  if (!other_build.empty() && !options.force) {
    throw Error(ErrorKind::usage, fmt::format("run {} was made by {}; build that, make a new run, or mix the results "
                                              "with --force",
                                              run.uid, other_build));
  }
  if (!other_build.empty()) context.console.note(fmt::format("run {} was made by {}", run.uid, other_build));
  if (const auto writer = store.writer_at_work(run.id)) {  // two resumes at once would run each case twice
    throw Error(ErrorKind::usage,
                fmt::format("run {} is still being run by {}; wait until it ends, or stop it", run.uid, *writer));
  }
  const Claim claim(store, run.id);  // before looking at what is missing, so that nobody else finishes it meanwhile
  // What is resumed is what is proved to be this user's own, although others may write to the file.
  std::optional<store::OneState> one_state(std::in_place, store);
  const store::StoredRun proved = store.find_run(run.uid).value();
  Conditions conditions = conditions_from_json(proved.protocol_json);
  plan::Plan missing;
  missing.root_seed = parse_seed(proved.root_seed);
  MineFiles files(store, options.mine, fmt::format("syslab resume {}{}", run.uid, db_flag(context.global)));
  const std::vector<store::PlanState> states = store.plan_state(proved.id);
  files.require_known(mine_names(states));
  std::int64_t planned = 0;
  Exit before = Exit::well;  // of what stays as it was
  for (const store::PlanState& state : states) {
    ++planned;
    const plan::PlannedCase again = planned_case(context.registry, state.plan, conditions.mine_device);
    if (!is_missing(state, options.failed, options.try_oom)) {
      before = worse(before, exit_of(*state.last_status, again.experiment->oom_is_an_answer));
      if (again.task == plan::Task::law && state.last_status == Status::check_failed)
        missing.falsified.push_back(again);
      continue;
    }
    files.require_may_name_files(proved.id, again);
    add_mine(missing, proved.id, state.plan.implementation, files);
    missing.cases.push_back(again);
  }
  one_state.reset();
  if (missing.cases.empty()) {
    if (context.console.json()) {
      context.console.print_line({{"type", "summary"}, {"run", run.uid}, {"missing", 0}, {"exit", int(before)}});
    } else if (!context.console.quiet()) {
      context.console.print(
          fmt::format("run {}: all of {} finished; nothing to resume\n", run.uid, counted(planned, "case")));
    }
    return before;
  }
  check_mine(missing.mine);
  if (!missing.mine.empty()) tell_missing_walls(context.console);
  skip_here(context, missing);
  conditions.try_oom = conditions.try_oom || options.try_oom;
  conditions.budget = options.budget.empty() ? Nanoseconds{} : duration_option("--budget", options.budget);
  return worse(before, run_and_store(context, store, run.id, missing, conditions));
}

}  // namespace syslab::cli
