// Entry points of the element-wise CUDA kernels, for the rung `fused_cuda`. Tensors as in elementwise.hpp, on the
// stream's device; work is queued on the stream. A failed launch throws Error(device).
#pragma once

#include "ops/elementwise/elementwise.hpp"

namespace syslab::elementwise {

void cuda_cast(const Problem& problem, const CastArgs& args, device::Stream stream);
void cuda_add(const Problem& problem, const AddArgs& args, device::Stream stream);
void cuda_fill(const Problem& problem, const FillArgs& args, device::Stream stream);
void cuda_split(const Problem& problem, const SplitArgs& args, device::Stream stream);
void cuda_join(const Problem& problem, const JoinArgs& args, device::Stream stream);

}  // namespace syslab::elementwise
