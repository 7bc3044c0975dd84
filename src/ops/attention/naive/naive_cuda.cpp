// `naive_cuda`: attention on a GPU as a framework without a fused kernel runs it, twice: as an autograd function that
// keeps P, and as a rung of the ladder with every rung's usual backward inputs.
//
//                      kept   held at most    matrices through memory, of B·H·S·S elements
//   forward            P      1 and S         S written, read 3 times, P written and read
//   backward, P kept          dP, dS          dP written and read, dS written and read twice, P read twice
//   backward from L           S, dP, P, dS    the same, and S written and read, P written
//
// The second is the yardstick for kernels in half precision (Operation::naive): as they do it takes P = exp(S − L)
// and δ = Σ O·dO from the L and the O that it is given. O is rounded, so that δ is not quite Σ P·dP; who sums P·dP has
// exact zeros where a causal row sees one key, and is no measure for kernels that cannot.
//
// In half precision scores and what becomes of them are fp32, weights and dS, which products read, of the tensors'
// dtype: as accurate as a kernel can be that rounds them where the tensor cores want it.
//
// Napkin maths, one head of 16,384 tokens, D = 64, fp32: a matrix is 1 GiB, 0.7 ms to read and write at 3 TB/s;
// products 4·S²·D = 69 GFLOP, 1.3 ms on FFMA units. Forward 3 ms; a fused kernel needs the 1.3 ms alone, or a tenth of
// that where tensor cores may do it.
#include "ops/attention/naive/materialised.hpp"
#include "ops/attention/naive/materialised_cuda.hpp"
#include "ops/attention/rungs.hpp"

namespace syslab::attention {
namespace {

constexpr const char* kNaiveCuda = "naive_cuda";

std::size_t naive_cuda_saved_bytes(const Problem& p) { return matrix_bytes(p, p.dtype); }

std::size_t naive_cuda_workspace_bytes(const Problem& p, Pass pass) {
  // Weights replace the scores in place, if both are fp32.
  const bool half = p.dtype != DType::f32;
  const std::size_t scores = matrix_bytes(p, DType::f32);
  if (pass == Pass::forward) return half ? scores : 0;
  return scores + (half ? matrix_bytes(p, p.dtype) : 0);
}

[[maybe_unused]] void naive_cuda_forward(const Problem& p, const PackedForward& tensors, std::byte* saved,
                                         ops::CallMemory& memory, device::Stream stream) {
  const GroupBlock block = GroupBlock::all(p);
  const Matrix weights{saved, p.dtype};
  const Matrix raw = p.dtype == DType::f32 ? weights : Matrix{memory.data(), DType::f32};
  queries_times_keys(block, p.effective_scale(), tensors.q.matrix(), tensors.k.matrix(), raw, stream);
  scores::softmax(scores::Rows::all(p), raw.dtype, raw.data, weights.dtype, weights.data, tensors.lse, stream);
  weights_times_keys(block, 1, weights, tensors.v.matrix(), tensors.out.matrix(), stream);
}

// dQ and dK from dS.
void gradients_of_scores(const Problem& p, const GroupBlock& block, const ConstMatrix& ds,
                         const PackedBackward& tensors, device::Stream stream) {
  weights_times_keys(block, p.effective_scale(), ds, tensors.k.matrix(), tensors.dq.matrix(), stream);
  turned_times_queries(block, p.effective_scale(), ds, tensors.q.matrix(), 0, tensors.dk.matrix(), stream);
}

[[maybe_unused]] void naive_cuda_backward(const Problem& p, const PackedBackward& tensors, const std::byte* saved,
                                          ops::CallMemory& memory, device::Stream stream) {
  const GroupBlock block = GroupBlock::all(p);
  const ConstMatrix weights(saved, p.dtype);
  const Matrix dp{take_floats(memory, p), DType::f32};
  const Matrix ds = p.dtype == DType::f32 ? dp : Matrix{take_matrix(memory, p, p.dtype), p.dtype};
  queries_times_keys(block, 1, tensors.dout.matrix(), tensors.v.matrix(), dp, stream);
  turned_times_queries(block, 1, weights, tensors.dout.matrix(), 0, tensors.dv.matrix(), stream);
  scores::softmax_gradient(scores::Rows::all(p), p.dtype, weights.data, static_cast<const float*>(dp.data), ds.data,
                           stream);
  gradients_of_scores(p, block, ds, tensors, stream);
}

// --- from O and L ---------------------------------------------------------------------------------------------------

std::size_t from_lse_bytes(const Problem& p) {
  return 2 * matrix_bytes(p, DType::f32) + (p.dtype == DType::f32 ? 0 : 2 * matrix_bytes(p, p.dtype));
}

void backward_from_lse(const Problem& p, const BackwardArgs& args, ops::Workspace workspace, device::Stream stream) {
  const device::CurrentDevice current(ops::require_gpu(kNaiveCuda, stream).place);
  const GroupBlock block = GroupBlock::all(p);
  const PackedBackward tensors(args, stream);
  ops::CallMemory memory(workspace, from_lse_bytes(p), "workspace", stream);
  const Matrix raw{take_floats(memory, p), DType::f32}, dp{take_floats(memory, p), DType::f32};
  const bool same = p.dtype == DType::f32;
  const Matrix weights = same ? raw : Matrix{take_matrix(memory, p, p.dtype), p.dtype};
  const Matrix ds = same ? dp : Matrix{take_matrix(memory, p, p.dtype), p.dtype};
  queries_times_keys(block, p.effective_scale(), tensors.q.matrix(), tensors.k.matrix(), raw, stream);
  queries_times_keys(block, 1, tensors.dout.matrix(), tensors.v.matrix(), dp, stream);
  scores::softmax_gradient_from_lse(scores::Rows::all(p), p.dtype,
                                    {.scores = raw.data,
                                     .dp = dp.data,
                                     .weights = weights.data,
                                     .ds = ds.data,
                                     .out = tensors.out.data(),
                                     .dout = tensors.dout.data(),
                                     .head_dim = p.head_dim},
                                    tensors.lse, stream);
  turned_times_queries(block, 1, weights, tensors.dout.matrix(), 0, tensors.dv.matrix(), stream);
  gradients_of_scores(p, block, ds, tensors, stream);
  tensors.finish();
}

}  // namespace

AutogradRung naive_cuda_autograd_rung() {
  AutogradRung rung;
  rung.name = kNaiveCuda;
  rung.role = Role::naive;
  rung.teaches = "cuBLAS and a softmax kernel each way; S×S weights are kept";
  rung.saved_bytes = naive_cuda_saved_bytes;
  rung.workspace_bytes = naive_cuda_workspace_bytes;
  return materialised_cuda_rung(rung, [](auto& entered) {
    entered.forward = forward_on_gpu(entered, naive_cuda_forward);
    entered.backward = backward_on_gpu(entered, naive_cuda_backward);
  });
}

Rung naive_cuda_rung() {
  Rung rung = as_rung(naive_cuda_autograd_rung());
  rung.teaches = "cuBLAS and a softmax kernel each way; S×S scores go through memory";
  rung.workspace_bytes = [forward = rung.workspace_bytes](const Problem& p, Pass pass) {
    return pass == Pass::forward ? forward(p, pass) : from_lse_bytes(p);
  };
  if constexpr (ops::kBuiltWithCuda) rung.backward = backward_from_lse;
  return rung;
}

}  // namespace syslab::attention
