// Runs a plan: one worker process an attempt, watched, limited, and never able to take the sweep down with it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "plan/plan.hpp"
#include "worker/protocol.hpp"

namespace syslab::runner {

struct RunOptions {
  std::string protocol = "kernel";
  std::string data = "normal";
  Nanoseconds timeout = std::chrono::minutes(10);  // of one attempt; then its process group is killed
  std::uint64_t memory_limit_bytes = 0;            // 0: none
  int law_cases = 100;
  std::string reproduce;                           // of law cases: replay this counterexample instead of searching
  std::vector<std::string> worker_command;         // empty: this binary, verb `worker`
  std::map<std::string, std::string> environment;  // added to the worker's
};

// Everything one attempt left behind.
struct AttemptResult {
  const plan::PlannedCase* planned = nullptr;
  worker::Status status = worker::Status::error;
  std::string detail;                   // why, for people; the last lines of standard error where they tell
  std::vector<worker::Record> records;  // in order, without progress, facts and end
  // Merged FactRecords, plus "isolation", "exit", "max_rss_bytes", "cpu_time_s" and, if anything was printed,
  // "stderr_tail".
  std::string facts_json = "{}";
  std::string started_at, ended_at;  // UTC
  Nanoseconds wall{};
};

// What the caller is told while a plan runs. `started` is called before the worker is spawned, and `finished` exactly
// once for each; a skipped case is only `finished`. Empty functions are not called. If a callback throws, the running
// worker is killed and the exception leaves run_plan.
struct Observer {
  std::function<void(const plan::PlannedCase&)> started;
  std::function<void(const plan::PlannedCase&, const worker::ProgressRecord&)> progress;
  std::function<void(const plan::PlannedCase&)> heartbeat;  // every 5 s
  std::function<void(AttemptResult)> finished;
};

// Runs the cases in order. A skipped case is `finished` with Status::skipped without a worker. SIGINT and SIGTERM end
// the running attempt as `aborted`, and run_plan returns false; true when every case was finished. One call at a time
// in a process, from a thread that outlives it.
//
// An end is believed only as far as the records support it: `ok` without a check that passed becomes `error`, `ok`
// beside a falsified check becomes `check_failed`.
bool run_plan(const plan::Plan& plan, const RunOptions& options, const Observer& observer);

}  // namespace syslab::runner
