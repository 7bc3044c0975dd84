// What a worker is asked, from what was planned; and which program is asked when nobody names one.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "runner/runner.hpp"
#include "worker/protocol.hpp"

namespace syslab::runner {

// This binary, verb `worker`.
std::vector<std::string> own_worker_command();

// `mine` are the implementations that are somebody's; the case's may be one of them.
worker::CaseRequest request_for(const plan::PlannedCase& planned, const std::vector<plan::MineSpec>& mine,
                                const RunOptions& options);

}  // namespace syslab::runner
