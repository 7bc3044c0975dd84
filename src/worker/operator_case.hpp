// Runs a case that is one operation: inputs from the seed, outputs poisoned and guarded, check against the float64
// reference, then measure on fresh inputs with randomly chosen timed samples verified.
//
// An experiment asks an operator for the operation and calls run_operator_case(); it writes no loop of its own.
#pragma once

#include "contract/operation.hpp"
#include "worker/case_context.hpp"

namespace syslab::worker {

// Emits check records "reference:<output>" and "samples:<output>", samples "time", metrics (time, its quantiles,
// tflops, gbps, worst errors, peak scratch memory) and facts. Throws CheckFailed, Unsupported, Error.
void run_operator_case(CaseContext& context, const Operation& operation);

}  // namespace syslab::worker
