// The passes of flash_tiled for one instruction set. The rung uses the best; tests use each.
#pragma once

#include "ops/attention/attention.hpp"
#include "ops/attention/tiled/kernels.hpp"

namespace syslab::attention {

// Rows per task: query rows for forward and dQ, keys for dK and dV. A multiple of every FlashKernels::rows.
inline constexpr std::int64_t kTaskRows = 96;

std::size_t flash_forward_workspace(const FlashKernels& kernels, const Problem& problem);
std::size_t flash_backward_workspace(const FlashKernels& kernels, const Problem& problem);
void flash_forward(const FlashKernels& kernels, const Problem& problem, const ForwardArgs& args,
                   ops::Workspace workspace);
void flash_backward(const FlashKernels& kernels, const Problem& problem, const BackwardArgs& args,
                    ops::Workspace workspace);

}  // namespace syslab::attention
