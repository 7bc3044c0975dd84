// Entry points of flash_wgmma, forward: FlashAttention on the instructions that compute capability 9.0 alone has (TMA,
// wgmma), bf16 and fp16 with fp32 accumulation. How the kernel works stands in wgmma/forward.cuh; which tile a problem
// gets, in wgmma/plan.hpp.
#pragma once

#include <optional>
#include <string>

#include "ops/attention/attention.hpp"

namespace syslab::attention {

// Why flash_wgmma cannot take a problem in this pass: another dtype, or a head_dim that is no multiple of 8 or beyond
// 256.
std::optional<std::string> flash_wgmma_refusal(const Problem& problem, Pass pass);

// Partial results where keys are split, and a counter, for causal masks. Without room for the counter the pass is as
// right, and slower where items are few and uneven.
std::size_t flash_wgmma_forward_workspace(const Problem& problem);

// Queues the forward pass on `stream`; takes memory of its own for partial results alone, if they do not fit what is
// lent. Preconditions: validate() passed, flash_wgmma_refusal() said nothing. Throws Error(usage) naming tensor and
// stride where a row is not aligned to 16 bytes or a stride is not positive, and Error(device) if the stream's GPU is
// not of compute capability 9.0 or the launch fails.
void flash_wgmma_forward(const Problem& problem, const ForwardArgs& args, ops::Workspace workspace,
                         device::Stream stream);

}  // namespace syslab::attention
