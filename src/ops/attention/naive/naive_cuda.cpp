// `naive_cuda`: attention on a GPU as a framework without a fused kernel runs it, twice: as an autograd function that
// keeps P, and as a rung of the ladder whose backward pass is given what every rung's is.
//
//                      kept   held at most    matrices through memory, of B·H·S·S elements
//   forward            P      1 and S         S written, read 3 times, P written and read
//   backward, P kept          dP, dS          dP written and read, dS written and read twice, P read twice
//   backward from L           S, dP, P, dS    the same, and S written and read, P written
//
// The second is the yardstick for kernels in half precision (ops::Operation::naive): as they do it takes P = exp(S − L)
// and δ = Σ O·dO from the L and the O that it is given. O is rounded, so that δ is not quite Σ P·dP; who sums P·dP has
// exact zeros where a causal row sees one key, and is no measure for kernels that cannot.
//
// In half precision scores and what becomes of them are fp32, weights and dS, which products read, of the tensors'
// dtype: as accurate as a kernel can be that rounds them where the tensor cores want it.
//
// Napkin maths, one head of 16,384 tokens, D = 64, fp32: a matrix is 1 GiB, 0.7 ms to read and write at 3 TB/s;
// products 4·S²·D = 69 GFLOP, 1.3 ms on FFMA units. Forward 3 ms; a fused kernel needs the 1.3 ms alone, or a tenth of
// that where tensor cores may do it.
#include "device/launch.hpp"
#include "ops/attention/group_products.hpp"
#include "ops/attention/naive/materialised.hpp"
#include "ops/attention/naive/materialised_cuda.hpp"
#include "ops/attention/packed.hpp"
#include "ops/attention/rungs.hpp"
#include "ops/attention/scores_cuda.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/require_gpu.hpp"

namespace syslab::attention {
namespace {

constexpr const char* kNaiveCuda = "naive_cuda";

std::size_t naive_cuda_saved_bytes(const Problem& p) { return matrix_bytes(p, p.dtype); }

std::size_t naive_cuda_workspace_bytes(const Problem& p, Direction direction) {
  // Scores become weights where they lie, if both are fp32.
  const bool half = p.dtype != DType::f32;
  const std::size_t scores = matrix_bytes(p, DType::f32);
  if (direction == Direction::forward) return half ? scores : 0;
  return scores + (half ? matrix_bytes(p, p.dtype) : 0);
}

void naive_cuda_forward(const Problem& p, const ForwardArgs& args, ops::Workspace saved, ops::Workspace workspace,
                        device::Stream stream) {
  const device::CurrentDevice current(ops::require_gpu(kNaiveCuda, stream).place);
  require_saved(kNaiveCuda, saved, naive_cuda_saved_bytes(p));
  const GroupBlock block = GroupBlock::all(p);
  const PackedInput q(args.q, stream), k(args.k, stream), v(args.v, stream);
  const PackedOutput out(args.out, stream);
  const ops::CallMemory memory(workspace, naive_cuda_workspace_bytes(p, Direction::forward), "workspace", stream);
  const Matrix weights{saved.data, p.dtype};
  const Matrix raw = p.dtype == DType::f32 ? weights : Matrix{memory.data(), DType::f32};
  queries_times_keys(block, p.effective_scale(), {q.data(), p.dtype}, {k.data(), p.dtype}, raw, stream);
  scores::softmax(scores::Rows::all(p), raw.dtype, raw.data, weights.dtype, weights.data, scores::Lse(args.lse),
                  stream);
  weights_times_keys(block, 1, weights, {v.data(), p.dtype}, {out.data(), p.dtype}, stream);
  out.finish();
}

// dQ and dK from dS.
void gradients_of_scores(const Problem& p, const GroupBlock& block, const ConstMatrix& ds, const PackedInput& q,
                         const PackedInput& k, const PackedOutput& dq, const PackedOutput& dk, device::Stream stream) {
  weights_times_keys(block, p.effective_scale(), ds, {k.data(), p.dtype}, {dq.data(), p.dtype}, stream);
  turned_times_queries(block, p.effective_scale(), ds, {q.data(), p.dtype}, 0, {dk.data(), p.dtype}, stream);
}

void naive_cuda_backward(const Problem& p, const BackwardArgs& args, ops::Workspace saved, ops::Workspace workspace,
                         device::Stream stream) {
  const device::CurrentDevice current(ops::require_gpu(kNaiveCuda, stream).place);
  require_saved(kNaiveCuda, saved, naive_cuda_saved_bytes(p));
  const GroupBlock block = GroupBlock::all(p);
  const PackedInput q(args.q, stream), k(args.k, stream), v(args.v, stream), dout(args.dout, stream);
  const PackedOutput dq(args.dq, stream), dk(args.dk, stream), dv(args.dv, stream);
  ops::CallMemory memory(workspace, naive_cuda_workspace_bytes(p, Direction::backward), "workspace", stream);
  const ConstMatrix weights(saved.data, p.dtype);
  const Matrix dp{take_floats(memory, p), DType::f32};
  const Matrix ds = p.dtype == DType::f32 ? dp : Matrix{take_matrix(memory, p, p.dtype), p.dtype};
  queries_times_keys(block, 1, {dout.data(), p.dtype}, {v.data(), p.dtype}, dp, stream);
  turned_times_queries(block, 1, weights, {dout.data(), p.dtype}, 0, {dv.data(), p.dtype}, stream);
  scores::softmax_gradient(scores::Rows::all(p), p.dtype, weights.data, static_cast<const float*>(dp.data), ds.data,
                           stream);
  gradients_of_scores(p, block, ds, q, k, dq, dk, stream);
  for (const PackedOutput* output : {&dq, &dk, &dv}) output->finish();
}

// --- from O and L ---------------------------------------------------------------------------------------------------

std::size_t from_lse_bytes(const Problem& p) {
  return 2 * matrix_bytes(p, DType::f32) + (p.dtype == DType::f32 ? 0 : 2 * matrix_bytes(p, p.dtype));
}

void backward_from_lse(const Problem& p, const BackwardArgs& args, ops::Workspace workspace, device::Stream stream) {
  const device::CurrentDevice current(ops::require_gpu(kNaiveCuda, stream).place);
  const GroupBlock block = GroupBlock::all(p);
  const PackedInput q(args.q, stream), k(args.k, stream), v(args.v, stream), out(args.out, stream),
      dout(args.dout, stream);
  const PackedOutput dq(args.dq, stream), dk(args.dk, stream), dv(args.dv, stream);
  ops::CallMemory memory(workspace, from_lse_bytes(p), "workspace", stream);
  const Matrix raw{take_floats(memory, p), DType::f32}, dp{take_floats(memory, p), DType::f32};
  const bool same = p.dtype == DType::f32;
  const Matrix weights = same ? raw : Matrix{take_matrix(memory, p, p.dtype), p.dtype};
  const Matrix ds = same ? dp : Matrix{take_matrix(memory, p, p.dtype), p.dtype};
  queries_times_keys(block, p.effective_scale(), {q.data(), p.dtype}, {k.data(), p.dtype}, raw, stream);
  queries_times_keys(block, 1, {dout.data(), p.dtype}, {v.data(), p.dtype}, dp, stream);
  scores::softmax_gradient_from_lse(scores::Rows::all(p), p.dtype,
                                    {.scores = raw.data,
                                     .dp = dp.data,
                                     .weights = weights.data,
                                     .ds = ds.data,
                                     .out = out.data(),
                                     .dout = dout.data(),
                                     .head_dim = p.head_dim},
                                    scores::Lse(args.lse), stream);
  turned_times_queries(block, 1, weights, {dout.data(), p.dtype}, 0, {dv.data(), p.dtype}, stream);
  gradients_of_scores(p, block, ds, q, k, dq, dk, stream);
  for (const PackedOutput* output : {&dq, &dk, &dv}) output->finish();
}

}  // namespace

AutogradRung naive_cuda_autograd_rung() {
  AutogradRung rung;
  rung.name = kNaiveCuda;
  rung.teaches = "cuBLAS and a softmax kernel each way; S×S weights are kept";
  rung.dtypes = matrix_dtypes();
  rung.device = device::Kind::cuda;
  rung.minimum_sm = ops::kMinimumSm;
  rung.supports = refuse_matrices;
  rung.saved_bytes = naive_cuda_saved_bytes;
  rung.workspace_bytes = naive_cuda_workspace_bytes;
  if constexpr (ops::kBuiltWithCuda) {
    rung.forward = naive_cuda_forward;
    rung.backward = naive_cuda_backward;
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

Rung naive_cuda_rung() {
  Rung rung = as_rung(naive_cuda_autograd_rung());
  rung.teaches = "cuBLAS and a softmax kernel each way; S×S scores go through memory";
  rung.workspace_bytes = [forward = rung.workspace_bytes](const Problem& p, Direction direction) {
    return direction == Direction::forward ? forward(p, direction) : from_lse_bytes(p);
  };
  if constexpr (ops::kBuiltWithCuda) rung.backward = backward_from_lse;
  return rung;
}

}  // namespace syslab::attention
