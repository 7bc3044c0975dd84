// Entry points of flash_mma: FlashAttention-2 on the tensor cores of any GPU since sm_80 (mma.sync, cp.async), bf16 and
// fp16 with fp32 accumulation. mma/forward.cuh describes the kernels, mma/plan.hpp the division of a problem among the
// multiprocessors.
#pragma once

#include <optional>
#include <string>

#include "ops/attention/attention.hpp"

namespace syslab::attention {

// Why flash_mma cannot take a problem: another dtype, a head_dim that is not a multiple of 8 from 16 to 256.
std::optional<std::string> flash_mma_refusal(const Problem& problem);

// For the forward pass, planned for 132 multiprocessors. A GPU with another number follows its own plan if that needs
// no more memory.
std::size_t flash_mma_forward_workspace(const Problem& problem);

// Error(usage), beginning with `operation`, for sequences longer than 2^29 − 1: positions and their multiples are ints
// in the kernels. flash_mma_refusal() says the same.
void require_lengths(std::string_view operation, const Problem& problem);

// Queues the forward pass on `stream`. Preconditions: validate() passed, flash_mma_refusal() returned nothing. Throws
// Error(usage) naming tensor and stride if a row is not aligned to 16 bytes, and Error(device) if the stream's GPU is
// older than sm_80 or the launch fails. A workspace that is too small is not used; memory is then allocated for the
// call.
void flash_mma_forward(const Problem& problem, const ForwardArgs& args, ops::Workspace workspace,
                       device::Stream stream);

// Error(usage) unless every row of the tensor begins at a multiple of 16 bytes: cp.async and the stores move 16 at a
// time. The message begins with `operation`.
void require_aligned_rows(std::string_view operation, std::string_view name, const ConstTensorView& view);

}  // namespace syslab::attention
