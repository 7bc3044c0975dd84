// Runs a case that is one operation: inputs from the seed, outputs poisoned and guarded, check against the float64
// reference, then measure: every timed call on content of its own, its outputs looked at, and randomly chosen ones
// compared whole.
//
// An experiment asks an operator for the operation and calls run_operator_case(); it writes no loop of its own.
#pragma once

#include "contract/operation.hpp"
#include "worker/cases/case_context.hpp"

namespace syslab::worker {

// Decides which calls are compared, in which rows, and how long their groups are. Of somebody else's implementation,
// which may have read the run's seed and must not know, it is another each time.
std::uint64_t unforeseeable_seed(const CaseRequest& request);

// Emits, of each output, check records:
//   reference:<output>   the first call against the oracle
//   naive:<output>       in half precision: its error beside that of the naive kernel; not_run without a naive kernel
//   samples:<output>     all timed calls that were compared whole
//   eager:<output>       the same of the second series, where samples are graphs and it was taken (measure/eager.hpp)
//   sample:<output>      of one timed call, only where that is wrong
// samples "time" and "eager", metrics (time, its quantiles, tflops, gbps, worst errors, peak scratch memory) and facts.
// Throws CheckFailed, Unsupported, Error.
void run_operator_case(CaseContext& context, const Operation& operation);

}  // namespace syslab::worker
