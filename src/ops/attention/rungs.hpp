// Our own rungs, listed by ladder.cpp.
#pragma once

#include "ops/attention/attention.hpp"

namespace syslab::attention {

Rung reference_rung();
Rung naive_rung();
Rung flash_tiled_rung();
Rung reference_cuda_rung();
Rung naive_cuda_rung();
Rung flash_tf32_rung();
Rung flash_fp32_rung();
Rung flash_mma_rung();
Rung flash_mma_deterministic_rung();
Rung flash_wgmma_rung();
Rung flash_wgmma_deterministic_rung();

// Why a rung for these dtypes cannot take the problem; nothing if it can.
std::optional<std::string> refuse_dtype(const std::vector<DType>& dtypes, const Problem& problem);

// Number of host threads for a call, at most device::thread_count(): one per half millisecond of work on one core.
// Smaller pieces finish before a thread wakes up or, on a busy machine, is scheduled at all.
int threads_worth(const Problem& problem, Pass pass);

}  // namespace syslab::attention
