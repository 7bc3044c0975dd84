// The rungs of our own, for ladder.cpp to list.
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
Rung flash_wgmma_rung();  // before flash_mma: dispatch() takes the last that can, and this one has no backward pass yet
Rung flash_mma_rung();
Rung flash_mma_deterministic_rung();

// Why a rung for these dtypes cannot take the problem; nothing when it can.
std::optional<std::string> refuse_dtype(const std::vector<DType>& dtypes, const Problem& problem);

// How many threads of the host a call is worth, at most device::thread_count(): one for every half millisecond that one
// core would take. Less than that is done before a thread is awake, or, on a busy machine, before it is run at all.
int threads_worth(const Problem& problem, Direction direction);

}  // namespace syslab::attention
