// `tiled_cuda`: the rung that calls cuda_kernels.cu.
#include "device/cuda/launch.hpp"
#include "ops/call_memory.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/require_gpu.hpp"
#include "ops/weighted_sum/cuda_kernels.hpp"
#include "ops/weighted_sum/rungs.hpp"

namespace syslab::weighted_sum {
namespace {

constexpr const char* kName = "tiled_cuda";

std::size_t tiled_cuda_workspace_bytes(const Problem& problem, Pass pass) {
  return pass == Pass::forward ? 0 : cuda_partial_bytes(problem);
}

void tiled_cuda_forward(const Problem& problem, const ForwardArgs& args, ops::Workspace, device::Stream stream) {
  const device::CurrentDevice current(ops::require_gpu(kName, stream).place);
  cuda_forward(problem, args, stream);
}

void tiled_cuda_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace workspace,
                         device::Stream stream) {
  const device::CurrentDevice current(ops::require_gpu(kName, stream).place);
  const ops::CallMemory partials(workspace, cuda_partial_bytes(problem), "dw_partials", stream);
  cuda_backward(problem, args, static_cast<float*>(partials.data()), stream);
}

}  // namespace

Rung tiled_cuda_rung() {
  Rung rung;
  rung.name = kName;
  rung.teaches = "one pass over x on a GPU, a vector a lane; partial dw a chunk of rows, summed in order: no atomics";
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.device = device::Kind::cuda;
  rung.minimum_sm = ops::kMinimumSm;
  rung.supports = supports_dtypes(rung);
  if constexpr (ops::kBuiltWithCuda) {
    rung.workspace_bytes = tiled_cuda_workspace_bytes;
    rung.forward = tiled_cuda_forward;
    rung.backward = tiled_cuda_backward;
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

}  // namespace syslab::weighted_sum
