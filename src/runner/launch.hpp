// One launch of a case: a worker is asked, heard until the end of the case, and judged.
#pragma once

#include <vector>

#include "runner/interruption.hpp"
#include "runner/runner.hpp"
#include "runner/workers.hpp"

namespace syslab::runner {

struct Launch {
  worker::Status status = worker::Status::error;
  std::string detail;
  std::vector<worker::Record> records;  // in order, without progress, facts and end
  std::string facts_json = "{}";
};

// What a launch is asked and how long it may take.
struct LaunchOrder {
  const plan::PlannedCase& planned;
  const worker::CaseRequest& request;
  Clock::time_point deadline;
  bool fresh = false;       // a process of its own, whatever the isolation
  std::string progress_of;  // before each progress text: "launch 2 of 3"
};

// Never throws for what a worker does; only what the observer's callbacks throw comes out, after the worker was killed.
Launch run_launch(const LaunchOrder& order, const RunOptions& options, Workers& workers, const Observer& observer,
                  const Interruption& interruption);

}  // namespace syslab::runner
