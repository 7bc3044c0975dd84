// One attempt at a case: its launches, one after the other, made into one result.
#pragma once

#include "runner/interruption.hpp"
#include "runner/runner.hpp"
#include "runner/workers.hpp"

namespace syslab::runner {

// The first launch that does not end `ok` ends the attempt so. Never throws for what a worker does; only what the
// observer's callbacks throw comes out, after the worker was killed.
AttemptResult run_attempt(const plan::PlannedCase& planned, const worker::CaseRequest& request,
                          const RunOptions& options, Workers& workers, const Observer& observer,
                          const Interruption& interruption);

}  // namespace syslab::runner
