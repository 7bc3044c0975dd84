// `naive_cuda_literal`: attention on a GPU, op by op as it is written. Products by cuBLAS in the tensors' dtype with
// sums in fp32, everything between them by kernels of our own (scores_cuda.cu) that read and write matrices of scores
// through memory: an operation reads one and writes one, 14 forward and 17 backward, of B·H·S·S elements. exp and
// weights are kept; 4 matrices are held at most forward, 6 backward.
//
// Napkin maths, one head of 16,384 tokens, D = 64, fp32: a matrix is 1 GiB, 0.7 ms to read and write at 3 TB/s;
// products 4·S²·D = 69 GFLOP, 1.3 ms on FFMA units: forward 6 ms.
#include <optional>

#include "device/launch.hpp"
#include "device/nvtx.hpp"
#include "ops/attention/group_products.hpp"
#include "ops/attention/naive/materialised.hpp"
#include "ops/attention/naive/materialised_cuda.hpp"
#include "ops/attention/packed.hpp"
#include "ops/attention/scores_cuda.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/require_gpu.hpp"

namespace syslab::attention {
namespace {

using device::NvtxRange;
using device::RangeKind;

constexpr const char* kNaiveCudaLiteral = "naive_cuda_literal";

struct Saved {
  float* exp;
  Matrix weights;
  float* sum;
};

std::size_t literal_cuda_saved_bytes(const Problem& p) {
  return matrix_bytes(p, DType::f32) + matrix_bytes(p, p.dtype) + row_bytes(p);
}

Saved saved_in(const ops::Workspace& saved, const Problem& p) {
  require_saved(kNaiveCudaLiteral, saved, literal_cuda_saved_bytes(p));
  ops::CallMemory memory(saved, literal_cuda_saved_bytes(p), "saved");
  float* exp = take_floats(memory, p);
  const Matrix weights{take_matrix(memory, p, p.dtype), p.dtype};
  return {exp, weights, take_rows(memory, p)};
}

std::size_t literal_cuda_workspace_bytes(const Problem& p, Direction direction) {
  return (direction == Direction::forward ? 2 : 4) * matrix_bytes(p, DType::f32) + row_bytes(p);
}

void literal_cuda_forward(const Problem& p, const ForwardArgs& args, ops::Workspace saved, ops::Workspace workspace,
                          device::Stream stream) {
  const device::CurrentDevice current(ops::require_gpu(kNaiveCudaLiteral, stream).place);
  const GroupBlock block = GroupBlock::all(p);
  const scores::Rows rows = scores::Rows::all(p);
  const PackedInput q(args.q, stream), k(args.k, stream), v(args.v, stream);
  const PackedOutput out(args.out, stream);
  const Saved kept = saved_in(saved, p);
  ops::CallMemory memory(workspace, literal_cuda_workspace_bytes(p, Direction::forward), "workspace", stream);
  float *one = take_floats(memory, p), *other = take_floats(memory, p), *largest = take_rows(memory, p);
  std::optional<NvtxRange> part;
  part.emplace("scores", RangeKind::part);
  queries_times_keys(block, 1, {q.data(), p.dtype}, {k.data(), p.dtype}, {one, DType::f32}, stream);
  scores::scale(rows, one, p.effective_scale(), DType::f32, other, stream);
  if (p.mask != Mask::none) scores::mask(rows, other, stream);
  part.emplace("softmax", RangeKind::part);
  scores::row_max(rows, other, largest, stream);
  scores::subtract(rows, other, largest, one, stream);
  scores::exponential(rows, one, kept.exp, stream);
  scores::row_sum(rows, kept.exp, kept.sum, stream);
  scores::log_sum(rows, largest, kept.sum, scores::Lse(args.lse), stream);
  scores::divide(rows, kept.exp, kept.sum, p.dtype, kept.weights.data, stream);
  part.emplace("values", RangeKind::part);
  weights_times_keys(block, 1, kept.weights, {v.data(), p.dtype}, {out.data(), p.dtype}, stream);
  out.finish();
}

// Each line of the forward pass turned round, last first.
void literal_cuda_backward(const Problem& p, const BackwardArgs& args, ops::Workspace saved, ops::Workspace workspace,
                           device::Stream stream) {
  const device::CurrentDevice current(ops::require_gpu(kNaiveCudaLiteral, stream).place);
  const GroupBlock block = GroupBlock::all(p);
  const scores::Rows rows = scores::Rows::all(p);
  const PackedInput q(args.q, stream), k(args.k, stream), v(args.v, stream), dout(args.dout, stream);
  const PackedOutput dq(args.dq, stream), dk(args.dk, stream), dv(args.dv, stream);
  const Saved kept = saved_in(saved, p);
  ops::CallMemory memory(workspace, literal_cuda_workspace_bytes(p, Direction::backward), "workspace", stream);
  float *d_weights = take_floats(memory, p), *quotient = take_floats(memory, p), *product = take_floats(memory, p),
        *d_exp = take_floats(memory, p), *dot = take_rows(memory, p);
  float* d_shifted = product;  // those are done with by then
  const Matrix d_scores{quotient, p.dtype};
  std::optional<NvtxRange> part;
  part.emplace("values", RangeKind::part);
  queries_times_keys(block, 1, {dout.data(), p.dtype}, {v.data(), p.dtype}, {d_weights, DType::f32}, stream);
  turned_times_queries(block, 1, kept.weights, {dout.data(), p.dtype}, 0, {dv.data(), p.dtype}, stream);
  part.emplace("softmax", RangeKind::part);
  scores::divide(rows, d_weights, kept.sum, DType::f32, quotient, stream);
  scores::multiply(rows, d_weights, p.dtype, kept.weights.data, product, stream);
  scores::row_sum(rows, product, dot, stream);
  scores::add_quotient(rows, quotient, dot, kept.sum, d_exp, stream);
  scores::multiply(rows, d_exp, DType::f32, kept.exp, d_shifted, stream);
  part.emplace("scores", RangeKind::part);
  scores::scale(rows, d_shifted, p.effective_scale(), p.dtype, d_scores.data, stream);
  weights_times_keys(block, 1, d_scores, {k.data(), p.dtype}, {dq.data(), p.dtype}, stream);
  turned_times_queries(block, 1, d_scores, {q.data(), p.dtype}, 0, {dk.data(), p.dtype}, stream);
  for (const PackedOutput* output : {&dq, &dk, &dv}) output->finish();
}

}  // namespace

AutogradRung naive_cuda_literal_rung() {
  AutogradRung rung;
  rung.name = kNaiveCudaLiteral;
  rung.teaches = "the formula a kernel an operation; keeps S×S exp and weights";
  rung.dtypes = matrix_dtypes();
  rung.device = device::Kind::cuda;
  rung.minimum_sm = ops::kMinimumSm;
  rung.supports = refuse_matrices;
  rung.saved_bytes = literal_cuda_saved_bytes;
  rung.workspace_bytes = literal_cuda_workspace_bytes;
  if constexpr (ops::kBuiltWithCuda) {
    rung.forward = literal_cuda_forward;
    rung.backward = literal_cuda_backward;
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

}  // namespace syslab::attention
