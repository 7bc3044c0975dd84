// Entry points of the CUDA kernels of the cross-entropy, for the rung `fused_cuda`. Tensors as in cross_entropy.hpp, on
// the stream's device; work is queued on the stream. A failed launch throws Error(device).
#pragma once

#include "ops/cross_entropy/cross_entropy.hpp"

namespace syslab::cross_entropy {

void cuda_forward(const Problem& problem, const ForwardArgs& args, device::Stream stream);
void cuda_backward(const Problem& problem, const BackwardArgs& args, device::Stream stream);
void cuda_forward_backward(const Problem& problem, const ForwardBackwardArgs& args, device::Stream stream);

}  // namespace syslab::cross_entropy
