// Backward passes of flash_wgmma and flash_wgmma_deterministic (compute capability 9.0; bf16 and fp16 with fp32
// accumulation; head_dim a multiple of 8 up to 256). How the kernels work stands in wgmma/backward.cuh and
// wgmma/backward_wide.cuh.
#pragma once

#include <cstddef>

#include "ops/attention/attention.hpp"

namespace syslab::attention {

// fp32 sums of dQ, 64 rows at a time, and two numbers a row.
std::size_t flash_wgmma_backward_workspace(const Problem& problem);

// Preconditions and errors as flash_wgmma_forward(). A workspace that is too small is left alone, and memory taken for
// the call. dQ is added up by atomics: its last bits differ from call to call. Those of dK and dV do not.
void flash_wgmma_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace workspace,
                          device::Stream stream);

// The same with dQ added up in the order of the keys: equal inputs give equal bits.
void flash_wgmma_deterministic_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace workspace,
                                        device::Stream stream);

}  // namespace syslab::attention
