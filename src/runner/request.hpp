// Makes a worker's request from a planned case; and the default worker program.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "runner/runner.hpp"
#include "worker/wire/wire.hpp"

namespace syslab::runner {

// This binary, verb `worker`.
std::vector<std::string> own_worker_command();

// `mine`: external implementations; the case's may be one of them. `reproduce`: for a law, the counterexample to replay
// instead of searching.
worker::CaseRequest request_for(const plan::PlannedCase& planned, const std::vector<Submitted>& mine,
                                const MeasureSpec& spec, const std::string& reproduce = {});

// Whether one worker starts all of its ranks (CaseRequest::own_ranks).
bool starts_ranks(const plan::PlannedCase& planned);

// Whether the machine code of the kernels that it ran is to be stored with it; one launch of it tells.
bool wants_kernel_code(const plan::PlannedCase& planned);

}  // namespace syslab::runner
