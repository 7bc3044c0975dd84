// A stored run while it happens: the plan goes to the runner, what comes back goes to the store, and people are told.
// The runner and the store do not see each other; here they meet.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "runner/runner.hpp"
#include "session/context.hpp"
#include "store/store.hpp"

namespace syslab::cli {

// How the cases of a run are measured: stored with the run, so that `resume` does the same.
struct Conditions {
  std::string protocol = "kernel";
  std::string data = "normal";
  int law_cases = 100;
  Nanoseconds timeout = std::chrono::minutes(10);
  std::uint64_t memory_limit_bytes = 0;
  bool try_oom = false;
  int launches = 1;
  runner::Isolation isolation = runner::Isolation::by_device;
  std::string mine_device = "cpu";  // where --mine runs
  Nanoseconds budget{};             // 0: none; of one sitting, so `resume` has its own
};
Json to_json(const Conditions& conditions);
Conditions conditions_from_json(const std::string& text);
runner::RunOptions to_run_options(const Context& context, const Conditions& conditions);

// Of a run that no --protocol names one for, and a run has one: what its experiments name where they all name the same,
// else the general one; quick for smoke.
std::string own_protocol(const std::vector<plan::PlannedCase>& cases, bool smoke);
// From what the command line says of measuring the plan; Error(usage) for what it does not take.
Conditions to_conditions(const MeasuringOptions& options, const plan::Plan& plan, bool smoke);

// Where the plan has --mine run.
std::string mine_device(const plan::Plan& plan);

// A run taken by this process while an object of this class lives. Error(usage) if another is at work on it.
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

// Opens the database for writing, tells its notices, and closes what writers that died left open.
store::Store open_for_writing(const Context& context);

// Stores a new run with its plan; returns its key.
store::RowId begin_run(const Context& context, store::Store& store, const std::string& verb, const std::string& label,
                       const plan::Plan& plan, const Conditions& conditions);

// Runs `plan`, whose indices are positions in the run's plan, and stores each attempt. Under --json every attempt is
// printed once it is committed. Ends with a summary.
Exit run_and_store(const Context& context, store::Store& store, store::RowId run, const plan::Plan& plan,
                   const Conditions& conditions);

}  // namespace syslab::cli
