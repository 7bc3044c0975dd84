// Entry points of the CUDA kernels of the embedding, for the rung `fused_cuda`. Tensors as in embedding.hpp, on the
// stream's device; work is queued on the stream. A failed launch throws Error(device).
#pragma once

#include "ops/embedding/embedding.hpp"

namespace syslab::embedding {

void cuda_forward(const Problem& problem, const ForwardArgs& args, device::Stream stream);

std::size_t cuda_backward_bytes(const Problem& problem);  // of workspace
void cuda_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace workspace, device::Stream stream);

}  // namespace syslab::embedding
