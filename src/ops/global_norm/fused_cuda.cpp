// `fused_cuda`: the rung that calls cuda_kernels.cu.
#include "device/cuda/launch.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/global_norm/cuda_kernels.hpp"
#include "ops/global_norm/rungs.hpp"
#include "ops/require_gpu.hpp"

namespace syslab::global_norm {

Rung fused_cuda_rung() {
  Rung rung;
  rung.name = "fused_cuda";
  rung.teaches = "one read of the gradient, sums of blocks added in order; norm and factor never leave the GPU";
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.device = device::Kind::cuda;
  rung.minimum_sm = ops::kMinimumSm;
  rung.supports = supports_dtypes(rung);
  if constexpr (ops::kBuiltWithCuda) {
    rung.workspace_bytes = cuda_workspace_bytes;
    rung.norm = [](const Problem& problem, const NormArgs& args, ops::Workspace workspace, device::Stream stream) {
      const device::CurrentDevice current(ops::require_gpu("global_norm by fused_cuda", stream).place);
      cuda_norm(problem, args, workspace, stream);
    };
    rung.scale = [](const Problem& problem, const ScaleArgs& args, device::Stream stream) {
      const device::CurrentDevice current(ops::require_gpu("global_norm by fused_cuda", stream).place);
      cuda_scale(problem, args, stream);
    };
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

}  // namespace syslab::global_norm
