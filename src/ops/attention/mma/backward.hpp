// Backward passes of the tensor-core rungs flash_mma and flash_mma_deterministic (sm_80 and later; bf16 and fp16 with
// fp32 accumulation; head_dim a multiple of 8 from 16 to 256). How they are cut into blocks stands in
// mma/backward_plan.hpp, how the kernels work in mma/backward_keys.cuh and mma/backward_queries.cuh.
#pragma once

#include <cstddef>

#include "ops/attention/attention.hpp"

namespace syslab::attention {

// Preconditions of all: validate() passed, flash_mma_refusal() said nothing. Throws Error(usage) naming tensor and
// stride if a row is not aligned to 16 bytes, Error(device) if the stream's GPU is older than sm_80 or a launch fails.
// Workspace is planned for 132 multiprocessors; a GPU with another number has another plan, which it follows where no
// more memory is needed for it. A workspace that is too small is left alone, and memory taken for the call.

// dQ by atomic additions: its last bits differ from call to call. Those of dK and dV do not.
std::size_t flash_mma_backward_workspace(const Problem& problem);
void flash_mma_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace workspace,
                        device::Stream stream);

// Two passes, one for dQ and one for dK and dV, each of which computes P and dP again: equal inputs give equal bits on
// GPUs with as many multiprocessors, lent what workspace_bytes() says or nothing.
std::size_t flash_mma_deterministic_backward_workspace(const Problem& problem);
void flash_mma_deterministic_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace workspace,
                                      device::Stream stream);

}  // namespace syslab::attention
