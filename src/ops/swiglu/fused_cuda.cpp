// `fused_cuda`: the rung that calls cuda_kernels.cu.
#include <fmt/format.h>

#include "device/cuda/launch.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/require_gpu.hpp"
#include "ops/swiglu/cuda_kernels.hpp"
#include "ops/swiglu/rungs.hpp"

namespace syslab::swiglu {
namespace {

// Vectors are counted in 32 bits, including those of a last block that is not full.
constexpr std::int64_t kMostVectors = 0xffffffffLL - 512, kVectorBytes = 16;

void fused_cuda_forward(const Problem& problem, const ForwardArgs& args, ops::Workspace, device::Stream stream) {
  const device::CurrentDevice current(ops::require_gpu("swiglu by fused_cuda", stream).place);
  cuda_forward(problem, args, stream);
}

void fused_cuda_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace, device::Stream stream) {
  const device::CurrentDevice current(ops::require_gpu("swiglu by fused_cuda", stream).place);
  cuda_backward(problem, args, stream);
}

}  // namespace

Rung fused_cuda_rung() {
  Rung rung;
  rung.name = "fused_cuda";
  rung.teaches = "one pass at the speed of memory; the exponential of −|t| gives σ and 1 − σ, so nothing is kept";
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.device = device::Kind::cuda;
  rung.minimum_sm = ops::kMinimumSm;
  rung.supports = [by_dtype = supports_dtypes(rung)](const Problem& p, Pass pass) -> std::optional<std::string> {
    if (auto reason = by_dtype(p, pass)) return reason;
    const std::int64_t widest = kVectorBytes / static_cast<std::int64_t>(size_of(p.dtype));
    const std::int64_t of_row = p.dim % widest == 0 ? p.dim / widest : p.dim;
    if (of_row > kMostVectors || p.rows > kMostVectors / of_row) {
      return fmt::format(
          "fused_cuda takes up to {} vectors of 16 bytes (of one element where 16 bytes do not divide a row)",
          kMostVectors);
    }
    return std::nullopt;
  };
  if constexpr (ops::kBuiltWithCuda) {
    rung.forward = fused_cuda_forward;
    rung.backward = fused_cuda_backward;
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

}  // namespace syslab::swiglu
