// Entry points of the CUDA kernels of the global norm, for the rung `fused_cuda`. Tensors as in global_norm.hpp, on the
// stream's device; work is queued on the stream. A failed launch throws Error(device).
#pragma once

#include "ops/global_norm/global_norm.hpp"

namespace syslab::global_norm {

std::size_t cuda_workspace_bytes(const Problem& problem);
void cuda_norm(const Problem& problem, const NormArgs& args, ops::Workspace workspace, device::Stream stream);
void cuda_scale(const Problem& problem, const ScaleArgs& args, device::Stream stream);

}  // namespace syslab::global_norm
