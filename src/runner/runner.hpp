// Runs a plan: one worker process per attempt, monitored and limited, so that it can never end the sweep.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "contract/measure_spec.hpp"
#include "core/text/units.hpp"
#include "plan/plan.hpp"
#include "runner/interruption.hpp"
#include "runner/isolation.hpp"
#include "runner/places.hpp"
#include "worker/wire/wire.hpp"

namespace syslab::runner {

// How the cases of a plan are run.
struct RunSpec : MeasureSpec {
  Nanoseconds budget{};  // of the whole plan; 0: none
  // Laws that hold are searched on, in shares of what is left of this time, counted from the plan's beginning.
  Nanoseconds until{};
  // Laws that hold draw no longer than their shares of this time, which passes as they count it themselves (OwnTime);
  // 0: as long as their tries take.
  Nanoseconds within{};
  int jobs = 1;                  // cases at a time; more than one is for what is not timed
  bool stop_at_failure = false;  // of one sitting: a case that fails is the last
  // Fresh processes per measuring attempt; a law has one. If more than one, they are never shared.
  int launches = 1;
  Isolation isolation = Isolation::by_device;
};

struct RunOptions : RunSpec {
  std::string reproduce;                           // of law cases: replay this counterexample instead of searching
  std::vector<std::string> worker_command;         // empty: this binary, verb `worker`
  std::map<std::string, std::string> environment;  // added to the worker's
  Places* places = nullptr;                        // of the ranks of a case; null: all are here
};

// Everything that one attempt produced.
struct AttemptResult {
  const plan::PlannedCase* planned = nullptr;
  Status status = Status::error;
  std::string detail;                   // why, for people; the last lines of standard error if they help
  std::vector<worker::Record> records;  // in order, without progress, facts and end
  // Merged FactRecords, plus "device", "isolation", "worker" (which process of this run, from 1), "exit" (unless it
  // lives on), "max_rss_bytes", "cpu_time_s" and, if anything was printed, "stderr_tail". With several launches: what
  // they agree on, and "launches", an array of each one's own. Of an out-of-memory that was not tried: {"predicted":
  // true}.
  std::string facts_json = "{}";
  std::string started_at, ended_at;  // UTC
  Nanoseconds wall{};
};

// Callbacks while a plan runs. `started` is called before the worker is spawned, and `finished` exactly once for each;
// a skipped case is only `finished`. Empty functions are not called. If a callback throws, the running worker is killed
// and the exception leaves run_plan.
struct Observer {
  std::function<void(const plan::PlannedCase&)> started;
  std::function<void(const plan::PlannedCase&, const worker::ProgressRecord&)> progress;
  std::function<void(const plan::PlannedCase&)> heartbeat;  // every 5 s
  std::function<void(AttemptResult)> finished;
  // A case that does not fit in the budget or stands behind a failure that stops the plan, and why: neither started nor
  // finished.
  std::function<void(const plan::PlannedCase&, const std::string& why)> left_out;
};

// Runs the cases in order. Without a worker a case is `finished` as Status::skipped if it is to be skipped, as
// Status::unsupported if it asks for more than the machine has, and as Status::oom if it cannot fit. A case to be timed
// is skipped as well if its implementation failed a law before (FalsifiedLaws says which laws count), except with
// several jobs, which time nothing. SIGINT, SIGTERM, SIGHUP and SIGUSR1 end the running attempt as `aborted`, and
// run_plan returns false; true if every case was finished. One call at a time in a process, from a thread that outlives
// it.
//
// Under a budget no case starts if its predicted time exceeds the rest, nor any once nothing is left; shorter ones
// behind it may. A case that has begun is not cut short.
//
// An end is believed only as far as the records support it: `ok` without a check that passed becomes `error`, `ok` with
// a falsified check becomes `check_failed`.
bool run_plan(const plan::Plan& plan, const RunOptions& options, const Observer& observer);
// The same for a caller that runs several plans in a row and must not die from a signal in between.
bool run_plan(const plan::Plan& plan, const RunOptions& options, const Observer& observer,
              const Interruption& interruption);

}  // namespace syslab::runner
