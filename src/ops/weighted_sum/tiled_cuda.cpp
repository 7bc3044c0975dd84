// `tiled_cuda`: the rung in front of cuda_kernels.cu.
#include "device/buffer.hpp"
#include "device/launch.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/weighted_sum/cuda_kernels.hpp"
#include "ops/weighted_sum/rungs.hpp"

namespace syslab::weighted_sum {
namespace {

std::size_t workspace_bytes(const Problem& problem, Direction direction) {
  return direction == Direction::forward ? 0 : cuda_partial_bytes(problem);
}

void forward(const Problem& problem, const ForwardArgs& args, ops::Workspace, device::Stream stream) {
  const device::CurrentDevice current(stream);
  cuda_forward(problem, args, stream);
}

void backward(const Problem& problem, const BackwardArgs& args, ops::Workspace workspace, device::Stream stream) {
  const device::CurrentDevice current(stream);
  device::Buffer own;
  if (const std::size_t needed = cuda_partial_bytes(problem); workspace.bytes < needed) {
    own = device::Buffer(needed, "dw_partials", stream);
    workspace = {own.data(), own.bytes()};
  }
  cuda_backward(problem, args, static_cast<float*>(workspace.data), stream);
}

}  // namespace

Rung tiled_cuda_rung() {
  Rung rung;
  rung.name = "tiled_cuda";
  rung.teaches = "one pass over x on a GPU, a vector a lane; partial dw a chunk of rows, summed in order: no atomics";
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.device = device::Kind::cuda;
  rung.minimum_sm = 80;
  rung.supports = supports_dtypes(rung);
  if constexpr (ops::kBuiltWithCuda) {
    rung.workspace_bytes = workspace_bytes;
    rung.forward = forward;
    rung.backward = backward;
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

}  // namespace syslab::weighted_sum
