// Runs and stores a plan: passes it to the runner, writes results to the store, and reports progress. The runner and
// the store do not see each other; only this room sees both.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/device_kind.hpp"
#include "plan/plan.hpp"
#include "runner/interruption.hpp"
#include "runner/runner.hpp"
#include "session/context.hpp"
#include "store/store.hpp"

namespace syslab::cli {

// How the cases of a run are measured: stored with the run, so that `resume` does the same.
// The budget is of one sitting: `resume` has its own.
struct Conditions : runner::RunSpec {
  bool try_oom = false;                      // include cases that need too much memory
  DeviceKind mine_device = DeviceKind::cpu;  // where --mine runs
  bool asks_for_times = true;  // else what cannot be timed is no matter: whether results are right is asked
  std::string mine_sources;    // digest of the project that a function of its adapters.py belongs to; empty: unknown
};
Json to_json(const Conditions& conditions);
Conditions conditions_from_json(const std::string& text);  // Error(store) names run.protocol and the field that is none
runner::RunOptions to_run_options(const Context& context, const Conditions& conditions);

// The one protocol of a run whose command names none: quick for smoke, else what all of its experiments name, else the
// general one.
std::string own_protocol(const std::vector<plan::PlannedCase>& cases, bool smoke);
// What the command line says about measuring, for this plan. Error(usage) for an option that does not fit it.
Conditions to_conditions(const MeasuringOptions& options, const plan::Plan& plan, bool smoke);

// The device on which this plan runs --mine.
DeviceKind mine_device(const plan::Plan& plan);

// Claims a run for this process during the object's lifetime. Error(usage) if another process is working on it.
class Claim {
 public:
  Claim(store::Store& store, store::RowId run);
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  ~Claim();

 private:
  store::Store& store_;
  store::RowId run_;
};

// The plan as rows of the store.
std::vector<store::PlanRow> plan_rows(const plan::Plan& plan);

// Hides files and folders from code that is judged, here and in processes that are started from now on.
void hide_from_judged(const std::vector<std::string>& paths);
// Hides the database from code that is judged: it holds the seeds of the run, and a lock on it would stop the run.
void hide_database(const std::string& file);

// Opens the database for writing, tells its notices, and closes what writers that died left open.
store::Store open_for_writing(const Context& context);

// This process's command line as a run keeps it.
std::vector<std::string> command_words(const Context& context);

// What is stored of our own implementations in the plan.
std::vector<store::RungFactRow> rung_facts(const plan::Plan& plan);

// Stores a new run with its plan; returns its key.
store::RowId begin_run(const Context& context, store::Store& store, const std::string& verb, const std::string& label,
                       const plan::Plan& plan, const Conditions& conditions);

// " --db other.db", for commands that the user is told to type; empty where the database is the usual one.
std::string db_flag(const GlobalOptions& global);

// How one run of a sitting ended.
struct PartOutcome {
  Exit exit = Exit::well;  // of the cases that were tried
  std::map<Status, int> counts;
  int left_out = 0;  // cases that the budget left no time for
};

// As run_and_store(), without the summary, and stopped by an interruption that outlives it. Cases that the budget
// leaves no time for are no failure.
PartOutcome run_part(const Context& context, store::Store& store, store::RowId run, const plan::Plan& plan,
                     const Conditions& conditions, const runner::Interruption& interruption);

// Runs `plan` (its indices are positions in the run's plan) and stores each attempt. Under --json every attempt is
// printed once it is committed. Ends with a summary and
// the command to type next, but for `one_of_several`: then whoever has them tells that once.
Exit run_and_store(const Context& context, store::Store& store, store::RowId run, const plan::Plan& plan,
                   const Conditions& conditions, bool one_of_several = false);

}  // namespace syslab::cli
