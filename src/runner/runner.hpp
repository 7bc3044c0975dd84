// Runs a plan: one worker process an attempt, watched, limited, and never able to take the sweep down with it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "plan/plan.hpp"
#include "runner/interruption.hpp"
#include "runner/places.hpp"
#include "worker/protocol.hpp"

namespace syslab::runner {

// Which cases share a worker process. `per_case`: none. `reuse`: one worker takes cases until one ends otherwise than
// ok, check_failed or unsupported; then it is replaced, because nobody knows what that case has left behind.
// `by_device`: cases on a GPU share one, since a process takes half a second to make itself at home there, and on the
// CPU each has its own.
enum class Isolation { by_device, per_case, reuse };
std::string_view to_string(Isolation isolation);   // "device", "case", "reuse"
Isolation parse_isolation(std::string_view text);  // Error(usage) for another word

struct RunOptions {
  std::string protocol = "kernel";
  std::string data = "normal";
  Nanoseconds timeout = std::chrono::minutes(10);  // of one attempt, all its launches; then its process group is killed
  Nanoseconds budget{};                            // of the whole plan; 0: none
  // Fresh processes that one attempt at measuring is made of; a law has one. More than one are never shared.
  int launches = 1;
  Isolation isolation = Isolation::by_device;
  std::uint64_t memory_limit_bytes = 0;  // 0: none
  int law_cases = 100;
  std::string reproduce;                           // of law cases: replay this counterexample instead of searching
  std::vector<std::string> worker_command;         // empty: this binary, verb `worker`
  std::map<std::string, std::string> environment;  // added to the worker's
  Places* places = nullptr;                        // of the ranks of a case; null: all are here
};

// Everything one attempt left behind.
struct AttemptResult {
  const plan::PlannedCase* planned = nullptr;
  worker::Status status = worker::Status::error;
  std::string detail;                   // why, for people; the last lines of standard error where they tell
  std::vector<worker::Record> records;  // in order, without progress, facts and end
  // Merged FactRecords, plus "device", "isolation", "worker" (which process of this run, from 1), "exit" (unless it
  // lives on), "max_rss_bytes", "cpu_time_s" and, if anything was printed, "stderr_tail". With several launches: what
  // they agree on, and "launches", an array of each one's own. Of an out-of-memory that was not tried: {"predicted":
  // true}.
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
  // A case that the budget leaves no time for, and why: neither started nor finished.
  std::function<void(const plan::PlannedCase&, const std::string& why)> left_out;
};

// Runs the cases in order. A skipped case is `finished` with Status::skipped without a worker, one that asks for more
// than the machine has with Status::unsupported, one with a predicted out-of-memory with Status::oom. SIGINT, SIGTERM
// and SIGHUP end the running attempt as `aborted`, and run_plan returns false; true when every case was finished. One
// call at a time in a process, from a thread that outlives it.
//
// Under a budget no case starts whose predicted time does not fit into what is left, nor any once nothing is left;
// shorter ones behind it may. A case that has begun is not cut short.
//
// An end is believed only as far as the records support it: `ok` without a check that passed becomes `error`, `ok`
// beside a falsified check becomes `check_failed`.
bool run_plan(const plan::Plan& plan, const RunOptions& options, const Observer& observer);
// The same for a caller that runs several plans one after the other, and is not to die of a signal in between.
bool run_plan(const plan::Plan& plan, const RunOptions& options, const Observer& observer,
              const Interruption& interruption);

}  // namespace syslab::runner
