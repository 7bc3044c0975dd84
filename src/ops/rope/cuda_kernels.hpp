// Entry points of the CUDA kernels of the rotation, for the rung `fused_cuda`. Tensors as in rope.hpp, on the stream's
// device; work is queued on the stream. A failed launch throws Error(device).
#pragma once

#include "ops/rope/rope.hpp"

namespace syslab::rope {

void cuda_forward(const Problem& problem, const Args& args, device::Stream stream);
void cuda_backward(const Problem& problem, const Args& args, device::Stream stream);

}  // namespace syslab::rope
