// `fused_cuda`: the rung that calls cuda_kernels.cu.
#include <fmt/format.h>

#include "device/cuda/launch.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/embedding/cuda_kernels.hpp"
#include "ops/embedding/rungs.hpp"
#include "ops/require_gpu.hpp"

namespace syslab::embedding {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 30;  // lists count in 32 bits

std::optional<std::string> refusal(const Problem& problem) {
  if (problem.table_dtype == DType::f64) return "fused_cuda takes fp32, fp16, bf16, not fp64";
  if (problem.rows > kMost || problem.vocab > kMost) {
    return fmt::format("fused_cuda takes up to {} tokens and ids", kMost);
  }
  return std::nullopt;
}

}  // namespace

Rung fused_cuda_rung() {
  Rung rung;
  rung.name = "fused_cuda";
  rung.teaches = "tokens listed by id in order, long lists cut into pieces: the same sums every time, without atomics";
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.device = device::Kind::cuda;
  rung.minimum_sm = ops::kMinimumSm;
  rung.supports = refusal;
  if constexpr (ops::kBuiltWithCuda) {
    rung.workspace_bytes = [](const Problem& problem, Pass pass) -> std::size_t {
      return pass == Pass::forward ? 0 : cuda_backward_bytes(problem);
    };
    rung.forward = [](const Problem& problem, const ForwardArgs& args, ops::Workspace, device::Stream stream) {
      const device::CurrentDevice current(ops::require_gpu("embedding by fused_cuda", stream).place);
      cuda_forward(problem, args, stream);
    };
    rung.backward = [](const Problem& problem, const BackwardArgs& args, ops::Workspace workspace,
                       device::Stream stream) {
      const device::CurrentDevice current(ops::require_gpu("embedding by fused_cuda", stream).place);
      cuda_backward(problem, args, workspace, stream);
    };
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

}  // namespace syslab::embedding
