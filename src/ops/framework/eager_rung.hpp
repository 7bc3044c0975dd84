// The rung "eager_cuda" of an operator: one kernel per operation, as a framework launches them, with every result
// rounded.
#pragma once

#include <string>
#include <utility>

#include "ops/cuda_rung.hpp"
#include "ops/require_gpu.hpp"

namespace syslab::framework {

// Builds the rung without entry points, which `enter(rung)` sets in builds with CUDA; without CUDA the rung is only
// data. The operator's supports_dtypes(rung), declared next to its Rung, gives the supported dtypes. `enter` is a
// generic lambda, so that its body is instantiated only in builds with CUDA.
template <typename Rung, typename WorkspaceBytes, typename Enter>
Rung eager_rung(std::string teaches, WorkspaceBytes workspace_bytes, Enter enter) {
  Rung rung;
  rung.name = "eager_cuda";
  rung.teaches = "a kernel an operation, as a framework launches them: " + std::move(teaches);
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.device = device::Kind::cuda;
  rung.minimum_sm = ops::kMinimumSm;
  rung.op_by_op = true;
  rung.supports = supports_dtypes(rung);
  rung.workspace_bytes = workspace_bytes;
  if constexpr (ops::kBuiltWithCuda) {
    enter(rung);
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

}  // namespace syslab::framework
