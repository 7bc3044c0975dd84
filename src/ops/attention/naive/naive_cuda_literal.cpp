// `naive_cuda_literal`: attention on a GPU, op by op as it is written. Products by cuBLAS in the tensors' dtype with
// sums in fp32, everything between them by kernels of our own (scores_cuda.cu) that read and write matrices of scores
// through memory: an operation reads one and writes one, 14 forward and 17 backward, of B·H·S·S elements. exp and
// weights are kept; 4 matrices are held at most forward, 6 backward.
//
// Napkin maths, one head of 16,384 tokens, D = 64, fp32: a matrix is 1 GiB, 0.7 ms to read and write at 3 TB/s;
// products 4·S²·D = 69 GFLOP, 1.3 ms on FFMA units: forward 6 ms.
#include <optional>

#include "device/cuda/nvtx.hpp"
#include "ops/attention/naive/materialised.hpp"
#include "ops/attention/naive/materialised_cuda.hpp"

namespace syslab::attention {
namespace {

using device::NvtxRange;
using device::RangeKind;

std::size_t literal_cuda_saved_bytes(const Problem& p) {
  return matrix_bytes(p, DType::f32) + matrix_bytes(p, p.dtype) + row_bytes(p);
}

// Where in `saved` what is kept begins: exp, then weights, then the sums of rows.
template <typename Byte>
struct Kept {
  Kept(const Problem& p, Byte* saved)
      : exp(saved), weights(exp + matrix_bytes(p, DType::f32)), sum(weights + matrix_bytes(p, p.dtype)) {}

  Byte *exp, *weights, *sum;
};

std::size_t literal_cuda_workspace_bytes(const Problem& p, Pass pass) {
  return (pass == Pass::forward ? 2 : 4) * matrix_bytes(p, DType::f32) + row_bytes(p);
}

[[maybe_unused]] void literal_cuda_forward(const Problem& p, const PackedForward& tensors, std::byte* saved,
                                           ops::CallMemory& memory, device::Stream stream) {
  const GroupBlock block = GroupBlock::all(p);
  const scores::Rows rows = scores::Rows::all(p);
  const Kept kept(p, saved);
  auto *exp = reinterpret_cast<float*>(kept.exp), *sum = reinterpret_cast<float*>(kept.sum);
  const Matrix weights{kept.weights, p.dtype};
  float *one = take_floats(memory, p), *other = take_floats(memory, p), *largest = take_rows(memory, p);
  std::optional<NvtxRange> part;
  part.emplace("scores", RangeKind::part);
  queries_times_keys(block, 1, tensors.q.matrix(), tensors.k.matrix(), {one, DType::f32}, stream);
  scores::scale(rows, one, p.effective_scale(), DType::f32, other, stream);
  if (p.mask != Mask::none) scores::mask(rows, other, stream);
  part.emplace("softmax", RangeKind::part);
  scores::row_max(rows, other, largest, stream);
  scores::subtract(rows, other, largest, one, stream);
  scores::exponential(rows, one, exp, stream);
  scores::row_sum(rows, exp, sum, stream);
  scores::log_sum(rows, largest, sum, tensors.lse, stream);
  scores::divide(rows, exp, sum, p.dtype, weights.data, stream);
  part.emplace("values", RangeKind::part);
  weights_times_keys(block, 1, weights, tensors.v.matrix(), tensors.out.matrix(), stream);
}

// The derivative of each line of the forward pass, the last line first.
[[maybe_unused]] void literal_cuda_backward(const Problem& p, const PackedBackward& tensors, const std::byte* saved,
                                            ops::CallMemory& memory, device::Stream stream) {
  const GroupBlock block = GroupBlock::all(p);
  const scores::Rows rows = scores::Rows::all(p);
  const Kept kept(p, saved);
  const auto *exp = reinterpret_cast<const float*>(kept.exp), *sum = reinterpret_cast<const float*>(kept.sum);
  const ConstMatrix weights(kept.weights, p.dtype);
  float *d_weights = take_floats(memory, p), *quotient = take_floats(memory, p), *product = take_floats(memory, p),
        *d_exp = take_floats(memory, p), *dot = take_rows(memory, p);
  float* d_shifted = product;  // not needed any more by then
  const Matrix d_scores{quotient, p.dtype};
  std::optional<NvtxRange> part;
  part.emplace("values", RangeKind::part);
  queries_times_keys(block, 1, tensors.dout.matrix(), tensors.v.matrix(), {d_weights, DType::f32}, stream);
  turned_times_queries(block, 1, weights, tensors.dout.matrix(), 0, tensors.dv.matrix(), stream);
  part.emplace("softmax", RangeKind::part);
  scores::divide(rows, d_weights, sum, DType::f32, quotient, stream);
  scores::multiply(rows, d_weights, p.dtype, weights.data, product, stream);
  scores::row_sum(rows, product, dot, stream);
  scores::add_quotient(rows, quotient, dot, sum, d_exp, stream);
  scores::multiply(rows, d_exp, DType::f32, exp, d_shifted, stream);
  part.emplace("scores", RangeKind::part);
  scores::scale(rows, d_shifted, p.effective_scale(), p.dtype, d_scores.data, stream);
  weights_times_keys(block, 1, d_scores, tensors.k.matrix(), tensors.dq.matrix(), stream);
  turned_times_queries(block, 1, d_scores, tensors.q.matrix(), 0, tensors.dk.matrix(), stream);
}

}  // namespace

AutogradRung naive_cuda_literal_rung() {
  AutogradRung rung;
  rung.name = "naive_cuda_literal";
  rung.role = Role::literal;
  rung.teaches = "the formula a kernel an operation; keeps S×S exp and weights";
  rung.saved_bytes = literal_cuda_saved_bytes;
  rung.workspace_bytes = literal_cuda_workspace_bytes;
  return materialised_cuda_rung(rung, [](auto& entered) {
    entered.forward = forward_on_gpu(entered, literal_cuda_forward);
    entered.backward = backward_on_gpu(entered, literal_cuda_backward);
  });
}

}  // namespace syslab::attention
