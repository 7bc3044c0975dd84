// Entry points of the CUDA kernels of the normalisation, for the rung `fused_cuda`. Tensors as in rms_norm.hpp, on the
// stream's device; work is queued on the stream. A failed launch throws Error(device).
#pragma once

#include "ops/rms_norm/rms_norm.hpp"

namespace syslab::rms_norm {

// Error(usage) unless delta has y's dtype and dh has x's.
void cuda_forward(const Problem& problem, const ForwardArgs& args, device::Stream stream);

// `partial`: cuda_partial_bytes() of device memory for partial sums of dw.
std::size_t cuda_partial_bytes(const Problem& problem);
void cuda_backward(const Problem& problem, const BackwardArgs& args, float* partial, device::Stream stream);

}  // namespace syslab::rms_norm
