// `gpu`: the rung that calls cuda_kernels.cu.
#include "ops/accumulation/rungs.hpp"
#include "ops/cuda_rung.hpp"

namespace syslab::accumulation {

Rung gpu_rung() {
  Rung rung;
  rung.name = "gpu";
  rung.teaches = "one thread of a GPU: its own half-precision additions, which round once";
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.device = device::Kind::cuda;
  rung.minimum_sm = 80;
  if constexpr (ops::kBuiltWithCuda) {
    rung.sum = sum_on_gpu;
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

}  // namespace syslab::accumulation
