// One attempt at a case: runs its launches one after the other and combines them into one result.
#pragma once

#include "runner/interruption.hpp"
#include "runner/runner.hpp"
#include "runner/workers.hpp"

namespace syslab::runner {

// The first launch that does not end `ok` ends the attempt so. Never throws because of a worker; only exceptions of the
// observer's callbacks propagate, after the worker was killed.
AttemptResult run_attempt(const plan::PlannedCase& planned, const worker::CaseRequest& request,
                          const RunOptions& options, Workers& workers, const Observer& observer,
                          const Interruption& interruption);

}  // namespace syslab::runner
