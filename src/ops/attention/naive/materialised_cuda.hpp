// Shared by the rungs that hold score matrices of the whole batch on a GPU.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/cuda/launch.hpp"
#include "ops/attention/autograd.hpp"
#include "ops/attention/packed.hpp"
#include "ops/call_memory.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/require_gpu.hpp"

namespace syslab::attention {

inline std::int64_t score_rows(const Problem& p) { return p.batch * p.heads_q * p.seq_q; }
inline std::size_t matrix_bytes(const Problem& p, DType dtype) {
  return ops::CallMemory::part_bytes(static_cast<std::size_t>(score_rows(p) * p.seq_k) * size_of(dtype));
}
inline std::size_t row_bytes(const Problem& p) {
  return ops::CallMemory::part_bytes(static_cast<std::size_t>(score_rows(p)) * sizeof(float));
}

inline void* take_matrix(ops::CallMemory& memory, const Problem& p, DType dtype) {
  return memory.take_bytes(matrix_bytes(p, dtype));
}
inline float* take_floats(ops::CallMemory& memory, const Problem& p) {
  return reinterpret_cast<float*>(memory.take_bytes(matrix_bytes(p, DType::f32)));
}
inline float* take_rows(ops::CallMemory& memory, const Problem& p) {
  return reinterpret_cast<float*>(memory.take_bytes(row_bytes(p)));
}

// Why such a rung cannot take the problem; nothing if it can.
std::optional<std::string> refuse_matrices(const Problem& problem, Pass pass);
// f32, bf16 and f16.
const std::vector<DType>& matrix_dtypes();

// Entry points around the bodies of such a rung's passes, which get the tensors packed and memory for the call.
template <typename Body>  // body(problem, tensors, saved, memory, stream)
auto forward_on_gpu(const AutogradRung& rung, const Body& body) {
  return [name = rung.name, saved_bytes = rung.saved_bytes, workspace_bytes = rung.workspace_bytes, body](
             const Problem& p, const ForwardArgs& args, ops::Workspace saved, ops::Workspace workspace,
             device::Stream stream) {
    const device::CurrentDevice current(ops::require_gpu(name, stream).place);
    require_saved(name, saved, saved_bytes(p));
    const PackedForward tensors(args, stream);
    ops::CallMemory memory(workspace, workspace_bytes(p, Pass::forward), "workspace", stream);
    body(p, tensors, static_cast<std::byte*>(saved.data), memory, stream);
    tensors.finish();
  };
}

template <typename Body>  // the same, with what it only reads in `saved`
auto backward_on_gpu(const AutogradRung& rung, const Body& body) {
  return [name = rung.name, saved_bytes = rung.saved_bytes, workspace_bytes = rung.workspace_bytes, body](
             const Problem& p, const BackwardArgs& args, const Saved& saved, ops::Workspace workspace,
             device::Stream stream) {
    const device::CurrentDevice current(ops::require_gpu(name, stream).place);
    require_saved(name, saved, saved_bytes(p));
    const PackedBackward tensors(args, stream);
    ops::CallMemory memory(workspace, workspace_bytes(p, Pass::backward), "workspace", stream);
    body(p, tensors, static_cast<const std::byte*>(saved.data), memory, stream);
    tensors.finish();
  };
}

// Such a rung, of which `rung` says name, role, what it teaches and the bytes. `enter(rung)` sets the entry points in
// builds with CUDA; a generic lambda, so that its body is instantiated in those alone.
template <typename Enter>
AutogradRung materialised_cuda_rung(AutogradRung rung, const Enter& enter) {
  rung.dtypes = matrix_dtypes();
  rung.device = device::Kind::cuda;
  rung.minimum_sm = ops::kMinimumSm;
  rung.supports = refuse_matrices;
  if constexpr (ops::kBuiltWithCuda) {
    enter(rung);
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

}  // namespace syslab::attention
