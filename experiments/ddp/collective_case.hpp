// A case that is one collective operation, checked on every rank and timed both ways: what the experiments about
// communication alone have in common.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "comm/communicator.hpp"
#include "trials/measured_collective.hpp"
#include "worker/cases/case_context.hpp"

namespace syslab {

inline constexpr int kPipelined = 20;  // calls back to back, as nccl-tests has it by default

// An all-reduce of `elements` of fp32 over these ranks that is measured in place of the communicator's own.
using MakeAllReduce = std::function<parallel::MeasuredCollective::AllReduce(comm::Communicator& ranks,
                                                                            std::int64_t elements, device::Stream)>;

// Joins the ranks by `backend`, then runs the case: series "time" (a call, then wait) and "pipelined".
void run_collective_case(worker::CaseContext& context, const std::string& backend, comm::Operation operation,
                         std::int64_t bytes, const MakeAllReduce& instead = {});

}  // namespace syslab
