// `fused_cuda`: the rung that calls cuda_kernels.cu.
#include <fmt/format.h>

#include "device/cuda/launch.hpp"
#include "ops/cross_entropy/cuda_kernels.hpp"
#include "ops/cross_entropy/rungs.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/require_gpu.hpp"

namespace syslab::cross_entropy {
namespace {

// A block a row, and 32 bits within a row.
constexpr std::int64_t kMostRows = (std::int64_t{1} << 31) - 1, kMostClasses = std::int64_t{1} << 30;

std::optional<std::string> refusal(const Problem& problem) {
  if (problem.dtype == DType::f64) return "fused_cuda takes fp32, fp16, bf16, not fp64";
  if (problem.rows > kMostRows || problem.classes > kMostClasses) {
    return fmt::format("fused_cuda takes up to {} rows and {} classes", kMostRows, kMostClasses);
  }
  return std::nullopt;
}

}  // namespace

Rung fused_cuda_rung() {
  Rung rung;
  rung.name = "fused_cuda";
  rung.teaches = "a row kept on chip from the largest logit to the gradient: one read, one write";
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.device = device::Kind::cuda;
  rung.minimum_sm = ops::kMinimumSm;
  rung.supports = refusal;
  if constexpr (ops::kBuiltWithCuda) {
    rung.workspace_bytes = [](const Problem&, Pass) -> std::size_t { return 0; };
    rung.forward = [](const Problem& problem, const ForwardArgs& args, ops::Workspace, device::Stream stream) {
      const device::CurrentDevice current(ops::require_gpu("cross_entropy by fused_cuda", stream).place);
      cuda_forward(problem, args, stream);
    };
    rung.backward = [](const Problem& problem, const BackwardArgs& args, ops::Workspace, device::Stream stream) {
      const device::CurrentDevice current(ops::require_gpu("cross_entropy by fused_cuda", stream).place);
      cuda_backward(problem, args, stream);
    };
    rung.forward_backward = [](const Problem& problem, const ForwardBackwardArgs& args, ops::Workspace,
                               device::Stream stream) {
      const device::CurrentDevice current(ops::require_gpu("cross_entropy by fused_cuda", stream).place);
      cuda_forward_backward(problem, args, stream);
    };
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

}  // namespace syslab::cross_entropy
