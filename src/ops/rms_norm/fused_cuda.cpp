// `fused_cuda`: the rung that calls cuda_forward.cu and cuda_backward.cu.
#include <fmt/format.h>

#include "device/cuda/launch.hpp"
#include "ops/call_memory.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/require_gpu.hpp"
#include "ops/rms_norm/cuda_kernels.hpp"
#include "ops/rms_norm/rungs.hpp"

namespace syslab::rms_norm {
namespace {

// Blocks of a grid are counted in 31 bits, columns of a row in as many.
constexpr std::int64_t kMostRows = (std::int64_t{1} << 31) - 1, kMostColumns = std::int64_t{1} << 30;

std::size_t fused_cuda_workspace_bytes(const Problem& problem, Pass pass) {
  return pass == Pass::forward ? 0 : cuda_partial_bytes(problem);
}

void fused_cuda_forward(const Problem& problem, const ForwardArgs& args, ops::Workspace, device::Stream stream) {
  const device::CurrentDevice current(ops::require_gpu("rms_norm by fused_cuda", stream).place);
  cuda_forward(problem, args, stream);
}

void fused_cuda_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace workspace,
                         device::Stream stream) {
  const device::CurrentDevice current(ops::require_gpu("rms_norm by fused_cuda", stream).place);
  const ops::CallMemory memory(workspace, cuda_partial_bytes(problem), "dw_partials", stream);
  cuda_backward(problem, args, static_cast<float*>(memory.data()), stream);
}

}  // namespace

Rung fused_cuda_rung() {
  Rung rung;
  rung.name = "fused_cuda";
  rung.teaches =
      "a row in the registers of a group of lanes, read once; partial dw a block, summed in order: no atomics";
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.device = device::Kind::cuda;
  rung.minimum_sm = ops::kMinimumSm;
  rung.takes_any_delta = false;
  rung.supports = [of_x = supports_dtypes(rung)](const Problem& p, Pass pass) -> std::optional<std::string> {
    if (auto reason = of_x(p, pass)) return reason;
    if (p.rows > kMostRows || p.dim > kMostColumns) {
      return fmt::format("fused_cuda takes up to {} rows of up to {} columns", kMostRows, kMostColumns);
    }
    if (p.x_dtype == p.y_dtype || p.x_dtype == DType::f32) return std::nullopt;
    return fmt::format("fused_cuda takes y in x's dtype, or x in fp32; not x in {} and y in {}", to_string(p.x_dtype),
                       to_string(p.y_dtype));
  };
  if constexpr (ops::kBuiltWithCuda) {
    rung.workspace_bytes = fused_cuda_workspace_bytes;
    rung.forward = fused_cuda_forward;
    rung.backward = fused_cuda_backward;
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

}  // namespace syslab::rms_norm
