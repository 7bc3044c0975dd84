// One launch of a case: sends the request to a worker, receives records until the case ends, and judges it.
#pragma once

#include <vector>

#include "runner/interruption.hpp"
#include "runner/runner.hpp"
#include "runner/workers.hpp"

namespace syslab::runner {

struct Launch {
  Status status = Status::error;
  std::string detail;
  std::vector<worker::Record> records;  // in order, without progress, facts and end
  std::string facts_json = "{}";
};

// A launch's request and time limit.
struct LaunchOrder {
  const plan::PlannedCase& planned;
  const worker::CaseRequest& request;
  Clock::time_point deadline;
  bool fresh = false;       // a process of its own, whatever the isolation
  std::string progress_of;  // before each progress text: "launch 2 of 3"
};

// Never throws because of a worker; only exceptions of the observer's callbacks propagate, after the worker was killed.
Launch run_launch(const LaunchOrder& order, const RunOptions& options, Workers& workers, const Observer& observer,
                  const Interruption& interruption);

}  // namespace syslab::runner
