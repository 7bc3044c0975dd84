// One attempt at a case: a worker spawned, asked, watched and buried.
#pragma once

#include "runner/interruption.hpp"
#include "runner/runner.hpp"

namespace syslab::runner {

// Never throws for what a worker does; only what the observer's callbacks throw comes out, after the worker was killed.
AttemptResult run_attempt(const plan::PlannedCase& planned, const worker::CaseRequest& request,
                          const RunOptions& options, const Observer& observer, const Interruption& interruption);

}  // namespace syslab::runner
