// Backward passes of the tensor-core rungs flash_mma and flash_mma_deterministic (sm_80 and later; bf16 and fp16 with
// fp32 accumulation; head_dim a multiple of 8 from 16 to 256). mma/backward_plan.hpp describes the split into blocks,
// mma/backward_keys.cuh and mma/backward_queries.cuh the kernels.
#pragma once

#include <cstddef>

#include "ops/attention/attention.hpp"

namespace syslab::attention {

// Preconditions of all: validate() passed, flash_mma_refusal() returned nothing. Throws Error(usage) naming tensor and
// stride if a row is not aligned to 16 bytes, Error(device) if the stream's GPU is older than sm_80 or a launch fails.
// Workspace is planned for 132 multiprocessors; a GPU with another number follows its own plan if that needs no more
// memory. A workspace that is too small is not used; memory is then allocated for the call.

// dQ by atomic additions: its last bits differ from call to call; dK and dV are deterministic.
std::size_t flash_mma_backward_workspace(const Problem& problem);
void flash_mma_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace workspace,
                        device::Stream stream);

// Two passes, one for dQ and one for dK and dV, each of which recomputes P and dP: equal inputs give equal bits on GPUs
// with the same number of multiprocessors, with a workspace of workspace_bytes() or none.
std::size_t flash_mma_deterministic_backward_workspace(const Problem& problem);
void flash_mma_deterministic_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace workspace,
                                      device::Stream stream);

}  // namespace syslab::attention
