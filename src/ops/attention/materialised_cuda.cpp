// `naive_cuda` and `naive_cuda_literal`: attention on a GPU as a framework without a fused kernel runs it. Products by
// cuBLAS in the tensors' dtype with sums in fp32, everything between them by kernels of our own (scores_cuda.cu) that
// read and write matrices of scores through memory.
//
//                        kept            held at most    matrices through memory, of B·H·S·S elements
//   naive_cuda           P               1 and 2         forward: S written, read 3 times, P written and read
//   naive_cuda_literal   exp, weights    4 and 6         an operation reads one and writes one: 14 forward, 17 backward
//
// In half precision scores and what becomes of them are fp32, weights and dS, which products read, of the tensors'
// dtype: as accurate as a kernel can be that rounds them where the tensor cores want it, which makes these rungs the
// yardstick for others.
//
// Napkin maths, one head of 16,384 tokens, D = 64, fp32: a matrix is 1 GiB, 0.7 ms to read and write at 3 TB/s;
// products 4·S²·D = 69 GFLOP, 1.3 ms on FFMA units. naive_cuda forward 3 ms, literal 6 ms; a fused kernel needs the 1.3
// ms alone, or a tenth of that where tensor cores may do it.
#include <algorithm>
#include <utility>

#include "device/buffer.hpp"
#include "device/launch.hpp"
#include "ops/attention/group_products.hpp"
#include "ops/attention/materialised.hpp"
#include "ops/attention/packed.hpp"
#include "ops/attention/rungs.hpp"
#include "ops/attention/scores_cuda.hpp"
#include "ops/cuda_rung.hpp"

namespace syslab::attention {
namespace {

std::size_t aligned(std::size_t bytes) {
  return (bytes + device::kAlignment - 1) / device::kAlignment * device::kAlignment;
}

std::int64_t rows_of(const Problem& p) { return p.batch * p.heads_q * p.seq_q; }
std::size_t matrix_bytes(const Problem& p, DType dtype) {
  return aligned(static_cast<std::size_t>(rows_of(p) * p.seq_k) * size_of(dtype));
}
std::size_t row_bytes(const Problem& p) { return aligned(static_cast<std::size_t>(rows_of(p)) * sizeof(float)); }

// Cuts a workspace into aligned parts: the one lent, or memory of the call's own where that is too small.
class Parts {
 public:
  Parts(ops::Workspace lent, std::size_t bytes, device::Stream stream) {
    if (lent.bytes < bytes) own_ = device::Buffer(bytes, "workspace", stream, device::MemoryCategory::workspace);
    next_ = static_cast<std::byte*>(lent.bytes < bytes ? own_.data() : lent.data);
  }
  void* matrix(const Problem& p, DType dtype) { return take(matrix_bytes(p, dtype)); }
  float* floats(const Problem& p) { return static_cast<float*>(matrix(p, DType::f32)); }
  float* rows(const Problem& p) { return static_cast<float*>(take(row_bytes(p))); }

 private:
  void* take(std::size_t bytes) { return std::exchange(next_, next_ + bytes); }
  device::Buffer own_;
  std::byte* next_ = nullptr;
};

// --- naive_cuda -----------------------------------------------------------------------------------------------------

std::size_t naive_workspace(const Problem& p, Direction direction) {
  // Scores become weights where they lie, if both are fp32.
  const bool half = p.dtype != DType::f32;
  const std::size_t scores = matrix_bytes(p, DType::f32);
  if (direction == Direction::forward) return half ? scores : 0;
  return scores + (half ? matrix_bytes(p, p.dtype) : 0);
}

void naive_forward(const Problem& p, const ForwardArgs& args, ops::Workspace saved, ops::Workspace workspace,
                   device::Stream stream) {
  const device::CurrentDevice current(stream);
  const GroupBlock block = GroupBlock::all(p);
  const PackedInput q(args.q, stream), k(args.k, stream), v(args.v, stream);
  const PackedOutput out(args.out, stream);
  Parts kept(saved, matrix_bytes(p, p.dtype), stream), parts(workspace, naive_workspace(p, Direction::forward), stream);
  const Matrix weights{kept.matrix(p, p.dtype), p.dtype};
  const Matrix raw = p.dtype == DType::f32 ? weights : Matrix{parts.floats(p), DType::f32};
  queries_times_keys(block, p.effective_scale(), {q.data(), p.dtype}, {k.data(), p.dtype}, raw, stream);
  scores::softmax(scores::Rows::all(p), raw.dtype, raw.data, weights.dtype, weights.data, scores::Lse(args.lse),
                  stream);
  weights_times_keys(block, 1, weights, {v.data(), p.dtype}, {out.data(), p.dtype}, stream);
  out.finish();
}

void naive_backward(const Problem& p, const BackwardArgs& args, ops::Workspace saved, ops::Workspace workspace,
                    device::Stream stream) {
  const device::CurrentDevice current(stream);
  const GroupBlock block = GroupBlock::all(p);
  const PackedInput q(args.q, stream), k(args.k, stream), v(args.v, stream), dout(args.dout, stream);
  const PackedOutput dq(args.dq, stream), dk(args.dk, stream), dv(args.dv, stream);
  Parts parts(workspace, naive_workspace(p, Direction::backward), stream);
  const ConstMatrix weights(saved.data, p.dtype);
  const Matrix dp{parts.floats(p), DType::f32};
  const Matrix ds = p.dtype == DType::f32 ? dp : Matrix{parts.matrix(p, p.dtype), p.dtype};
  queries_times_keys(block, 1, {dout.data(), p.dtype}, {v.data(), p.dtype}, dp, stream);
  turned_times_queries(block, 1, weights, {dout.data(), p.dtype}, 0, {dv.data(), p.dtype}, stream);
  scores::softmax_gradient(scores::Rows::all(p), p.dtype, weights.data, static_cast<const float*>(dp.data), ds.data,
                           stream);
  weights_times_keys(block, p.effective_scale(), ds, {k.data(), p.dtype}, {dq.data(), p.dtype}, stream);
  turned_times_queries(block, p.effective_scale(), ds, {q.data(), p.dtype}, 0, {dk.data(), p.dtype}, stream);
  for (const PackedOutput* output : {&dq, &dk, &dv}) output->finish();
}

// --- naive_cuda_literal ---------------------------------------------------------------------------------------------

struct LiteralSaved {
  float* exp;
  Matrix weights;
  float* sum;
};

std::size_t literal_saved_bytes(const Problem& p) {
  return matrix_bytes(p, DType::f32) + matrix_bytes(p, p.dtype) + row_bytes(p);
}

LiteralSaved literal_saved(const Problem& p, ops::Workspace saved, device::Stream stream) {
  Parts parts(saved, literal_saved_bytes(p), stream);
  float* exp = parts.floats(p);
  const Matrix weights{parts.matrix(p, p.dtype), p.dtype};
  return {exp, weights, parts.rows(p)};
}

std::size_t literal_workspace(const Problem& p, Direction direction) {
  return (direction == Direction::forward ? 2 : 4) * matrix_bytes(p, DType::f32) + row_bytes(p);
}

void literal_forward(const Problem& p, const ForwardArgs& args, ops::Workspace saved, ops::Workspace workspace,
                     device::Stream stream) {
  const device::CurrentDevice current(stream);
  const GroupBlock block = GroupBlock::all(p);
  const scores::Rows rows = scores::Rows::all(p);
  const PackedInput q(args.q, stream), k(args.k, stream), v(args.v, stream);
  const PackedOutput out(args.out, stream);
  const LiteralSaved kept = literal_saved(p, saved, stream);
  Parts parts(workspace, literal_workspace(p, Direction::forward), stream);
  float *one = parts.floats(p), *other = parts.floats(p), *largest = parts.rows(p);
  queries_times_keys(block, 1, {q.data(), p.dtype}, {k.data(), p.dtype}, {one, DType::f32}, stream);
  scores::scale(rows, one, p.effective_scale(), DType::f32, other, stream);
  if (p.mask != Mask::none) scores::mask(rows, other, stream);
  scores::row_max(rows, other, largest, stream);
  scores::subtract(rows, other, largest, one, stream);
  scores::exponential(rows, one, kept.exp, stream);
  scores::row_sum(rows, kept.exp, kept.sum, stream);
  scores::log_sum(rows, largest, kept.sum, scores::Lse(args.lse), stream);
  scores::divide(rows, kept.exp, kept.sum, p.dtype, kept.weights.data, stream);
  weights_times_keys(block, 1, kept.weights, {v.data(), p.dtype}, {out.data(), p.dtype}, stream);
  out.finish();
}

// Each line of the forward pass turned round, last first.
void literal_backward(const Problem& p, const BackwardArgs& args, ops::Workspace saved, ops::Workspace workspace,
                      device::Stream stream) {
  const device::CurrentDevice current(stream);
  const GroupBlock block = GroupBlock::all(p);
  const scores::Rows rows = scores::Rows::all(p);
  const PackedInput q(args.q, stream), k(args.k, stream), v(args.v, stream), dout(args.dout, stream);
  const PackedOutput dq(args.dq, stream), dk(args.dk, stream), dv(args.dv, stream);
  const LiteralSaved kept = literal_saved(p, saved, stream);
  Parts parts(workspace, literal_workspace(p, Direction::backward), stream);
  float *d_weights = parts.floats(p), *quotient = parts.floats(p), *product = parts.floats(p), *d_exp = parts.floats(p),
        *dot = parts.rows(p);
  float* d_shifted = product;  // those are done with by then
  const Matrix d_scores{quotient, p.dtype};
  queries_times_keys(block, 1, {dout.data(), p.dtype}, {v.data(), p.dtype}, {d_weights, DType::f32}, stream);
  turned_times_queries(block, 1, kept.weights, {dout.data(), p.dtype}, 0, {dv.data(), p.dtype}, stream);
  scores::divide(rows, d_weights, kept.sum, DType::f32, quotient, stream);
  scores::multiply(rows, d_weights, p.dtype, kept.weights.data, product, stream);
  scores::row_sum(rows, product, dot, stream);
  scores::add_quotient(rows, quotient, dot, kept.sum, d_exp, stream);
  scores::multiply(rows, d_exp, DType::f32, kept.exp, d_shifted, stream);
  scores::scale(rows, d_shifted, p.effective_scale(), p.dtype, d_scores.data, stream);
  weights_times_keys(block, 1, d_scores, {k.data(), p.dtype}, {dq.data(), p.dtype}, stream);
  turned_times_queries(block, 1, d_scores, {q.data(), p.dtype}, 0, {dk.data(), p.dtype}, stream);
  for (const PackedOutput* output : {&dq, &dk, &dv}) output->finish();
}

AutogradRung on_cuda(const char* name, const char* teaches) {
  AutogradRung rung;
  rung.name = name;
  rung.teaches = teaches;
  rung.dtypes = {DType::f32, DType::bf16, DType::f16};
  rung.device = device::Kind::cuda;
  rung.minimum_sm = 80;
  rung.supports = [dtypes = rung.dtypes](const Problem& problem, Direction) { return refuse_dtype(dtypes, problem); };
  return rung;
}

}  // namespace

AutogradRung naive_cuda_rung() {
  AutogradRung rung = on_cuda("naive_cuda", "cuBLAS and a softmax kernel each way; S×S weights are kept");
  rung.saved_bytes = [](const Problem& p) { return matrix_bytes(p, p.dtype); };
  rung.workspace_bytes = naive_workspace;
  if constexpr (ops::kBuiltWithCuda) {
    rung.forward = naive_forward;
    rung.backward = naive_backward;
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

AutogradRung naive_cuda_literal_rung() {
  AutogradRung rung = on_cuda("naive_cuda_literal", "the formula a kernel an operation; keeps S×S exp and weights");
  rung.saved_bytes = literal_saved_bytes;
  rung.workspace_bytes = literal_workspace;
  if constexpr (ops::kBuiltWithCuda) {
    rung.forward = literal_forward;
    rung.backward = literal_backward;
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

}  // namespace syslab::attention
