// `fused_cuda`: the rung that calls cuda_kernels.cu.
#include "device/cuda/launch.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/require_gpu.hpp"
#include "ops/rope/cuda_kernels.hpp"
#include "ops/rope/rungs.hpp"

namespace syslab::rope {
namespace {

void fused_cuda_forward(const Problem& problem, const Args& args, ops::Workspace, device::Stream stream) {
  const device::CurrentDevice current(ops::require_gpu("rope by fused_cuda", stream).place);
  cuda_forward(problem, args, stream);
}

void fused_cuda_backward(const Problem& problem, const Args& args, ops::Workspace, device::Stream stream) {
  const device::CurrentDevice current(ops::require_gpu("rope by fused_cuda", stream).place);
  cuda_backward(problem, args, stream);
}

}  // namespace

Rung fused_cuda_rung() {
  Rung rung;
  rung.name = "fused_cuda";
  rung.teaches =
      "a thread turns the same pairs of several heads: the tables are read once a position, in place if asked";
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.device = device::Kind::cuda;
  rung.minimum_sm = ops::kMinimumSm;
  rung.supports = supports_dtypes(rung, kMostHeadDim);
  if constexpr (ops::kBuiltWithCuda) {
    rung.forward = fused_cuda_forward;
    rung.backward = fused_cuda_backward;
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

}  // namespace syslab::rope
