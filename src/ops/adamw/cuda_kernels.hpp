// Entry point of the CUDA kernel of AdamW, for the rung `fused_cuda`. Tensors as in adamw.hpp, on the stream's device;
// work is queued on the stream. A failed launch throws Error(device).
#pragma once

#include "ops/adamw/adamw.hpp"

namespace syslab::adamw {

void cuda_step(const Problem& problem, const Args& args, device::Stream stream);

}  // namespace syslab::adamw
