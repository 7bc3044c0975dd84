// Entry points of the CUDA kernels of the weighted sum, for the rung `tiled_cuda`. Tensors as in weighted_sum.hpp, on
// the stream's device; work is queued on the stream. A failed launch throws Error(device).
#pragma once

#include "ops/weighted_sum/weighted_sum.hpp"

namespace syslab::weighted_sum {

void cuda_forward(const Problem& problem, const ForwardArgs& args, device::Stream stream);

// `partial`: cuda_partial_bytes() of device memory for partial sums of dw.
std::size_t cuda_partial_bytes(const Problem& problem);
void cuda_backward(const Problem& problem, const BackwardArgs& args, float* partial, device::Stream stream);

}  // namespace syslab::weighted_sum
