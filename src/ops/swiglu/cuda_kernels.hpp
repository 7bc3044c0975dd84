// Entry points of the CUDA kernels of the gate, for the rung `fused_cuda`. Tensors as in swiglu.hpp, on the stream's
// device; work is queued on the stream. A failed launch throws Error(device).
#pragma once

#include "ops/swiglu/swiglu.hpp"

namespace syslab::swiglu {

void cuda_forward(const Problem& problem, const ForwardArgs& args, device::Stream stream);
void cuda_backward(const Problem& problem, const BackwardArgs& args, device::Stream stream);

}  // namespace syslab::swiglu
