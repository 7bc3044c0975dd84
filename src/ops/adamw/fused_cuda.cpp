// `fused_cuda`: the rung that calls cuda_kernels.cu.
#include "device/cuda/launch.hpp"
#include "ops/adamw/cuda_kernels.hpp"
#include "ops/adamw/rungs.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/require_gpu.hpp"

namespace syslab::adamw {

Rung fused_cuda_rung() {
  Rung rung;
  rung.name = "fused_cuda";
  rung.teaches = "one kernel over the whole arena: 28 bytes a parameter, its numbers read from device memory";
  rung.dtypes = {DType::f32};
  rung.device = device::Kind::cuda;
  rung.minimum_sm = ops::kMinimumSm;
  rung.supports = ops::supports_dtypes(rung, &Problem::dtype);
  if constexpr (ops::kBuiltWithCuda) {
    rung.step = [](const Problem& problem, const Args& args, device::Stream stream) {
      const device::CurrentDevice current(ops::require_gpu("adamw by fused_cuda", stream).place);
      cuda_step(problem, args, stream);
    };
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

}  // namespace syslab::adamw
