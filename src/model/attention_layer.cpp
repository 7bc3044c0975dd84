#include "model/attention_layer.hpp"

#include <array>

#include "model/linear.hpp"

namespace syslab::model {
namespace {

constexpr int kQueryKeyValue = 3;  // projections

attention::Problem problem_of(const PassContext& pass) {
  attention::Problem problem;
  problem.batch = pass.batch;
  problem.heads_q = problem.heads_kv = pass.config.heads;
  problem.seq_q = problem.seq_k = pass.seq;
  problem.head_dim = pass.config.head_dim();
  problem.mask = attention::Mask::top_left;
  problem.dtype = pass.dtypes.product;
  problem.tf32 = pass.kernels.attention.tf32;
  return problem;
}

// Heads [first, first + count) of a (rows, width) matrix with heads side by side in each row, as (batch, count, seq,
// head_dim).
template <typename View>
View heads_of(const PassContext& pass, const View& matrix, std::int64_t first, std::int64_t count) {
  const std::int64_t dim = pass.config.head_dim(), row = matrix.stride(0);
  View heads = columns(matrix, first * dim, count * dim);
  heads.shape = {pass.batch, count, pass.seq, dim};
  heads.strides = {pass.seq * row, dim, row, 1};
  return heads;
}

template <typename View>
std::array<View, 3> heads_of_qkv(const PassContext& pass, const View& qkv) {
  const std::int64_t heads = pass.config.heads;
  return {heads_of(pass, qkv, 0, heads), heads_of(pass, qkv, heads, heads), heads_of(pass, qkv, 2 * heads, heads)};
}

// Rotates Q and K in place, or rotates their gradients back. If RoPE produces another dtype than attention reads
// (autocast), it goes through a tensor of that dtype.
void rotate(const PassContext& pass, const RopeTables& tables, const TensorView& qkv, Pass direction) {
  if (tables.cos.data == nullptr) return;
  const TensorView both = heads_of(pass, qkv, 0, 2 * pass.config.heads);
  rope::Problem problem;
  problem.batch = pass.batch;
  problem.heads = 2 * pass.config.heads;
  problem.seq = pass.seq;
  problem.head_dim = pass.config.head_dim();
  problem.layout = pass.config.handout == Handout::y2025 ? rope::Layout::interleaved : rope::Layout::halves;
  problem.x_dtype = qkv.dtype;
  problem.y_dtype = pass.dtypes.rotated;

  const TensorView flat = columns(qkv, 0, 2 * pass.config.d_model);
  Tensor cast;
  TensorView rotated = both;
  if (problem.y_dtype != problem.x_dtype) {
    cast = pass.tensor("rotated", problem.y_dtype, flat.shape);
    rotated = heads_of(pass, cast.view(), 0, problem.heads);
  }
  const rope::Rung& rung = *pass.kernels.rope;
  const Scratch scratch(rung.workspace_bytes(problem, direction), pass.stream);
  const auto turn = [&](const auto& entry, const ConstTensorView& from, const TensorView& to) {
    const device::NvtxRange range = pass.call("rope", rung);
    entry(problem, {from, tables.cos, tables.sin, to}, scratch, pass.stream);
  };
  if (direction == Pass::forward) {
    turn(rung.forward, both, rotated);
    if (!cast.empty()) pass.cast(cast, flat);
  } else {
    if (!cast.empty()) pass.cast(flat, cast);
    turn(rung.backward, rotated, both);
  }
}

}  // namespace

Tensor attention_forward(const PassContext& pass, const std::string& name, const LayerIndices& index,
                         const RopeTables& tables, const ConstTensorView& normalized, AttentionSaved& saved,
                         Output output) {
  const device::NvtxRange part = pass.part(name);
  const std::int64_t rows = pass.rows(), d = pass.config.d_model;
  const attention::AutogradRung& rung = pass.kernels.attention;
  const attention::Problem problem = problem_of(pass);

  saved.qkv = pass.tensor(name + ".qkv", pass.dtypes.product, {rows, 3 * d});
  pass.with_weights(index.q,
                    [&](const ConstTensorView& w) { linear_joined(pass, normalized, w, saved.qkv, kQueryKeyValue); });
  rotate(pass, tables, saved.qkv, Pass::forward);
  pass.made(name + ".qkv", saved.qkv);

  saved.merged = pass.tensor(name + ".merged", pass.dtypes.product, {rows, d});
  saved.lse = pass.tensor(name + ".lse", pass.dtypes.statistics, {pass.batch, pass.config.heads, pass.seq});
  const auto [q, k, v] = heads_of_qkv(pass, ConstTensorView(saved.qkv));
  const std::size_t kept = rung.saved_bytes(problem);
  if (kept > 0) saved.kept = pass.tensor(name + ".kept", DType::f32, {static_cast<std::int64_t>((kept + 3) / 4)});
  {
    const Scratch scratch(rung.workspace_bytes(problem, Pass::forward), pass.stream);
    const device::NvtxRange range = pass.call("attention", rung);
    rung.forward(problem, {q, k, v, heads_of(pass, saved.merged.view(), 0, pass.config.heads), saved.lse},
                 {saved.kept.view().data, kept}, scratch, pass.stream);
  }
  pass.made(name + ".merged", saved.merged);
  if (output == Output::unwanted) return {};

  Tensor out = pass.tensor(name + ".out", pass.dtypes.product, {rows, d});
  pass.with_weights(index.output, [&](const ConstTensorView& w) { linear(pass, saved.merged, w, out); });
  pass.made(name + ".out", out);
  return out;
}

Tensor attention_backward(const PassContext& pass, const std::string& name, const LayerIndices& index,
                          const RopeTables& tables, const Given& normalized, AttentionSaved saved,
                          const ConstTensorView& dout) {
  const device::NvtxRange part = pass.part(name);
  const std::int64_t rows = pass.rows(), d = pass.config.d_model;
  const attention::AutogradRung& rung = pass.kernels.attention;
  const attention::Problem problem = problem_of(pass);

  linear_weight_gradient(pass, dout, saved.merged, pass.gradient(index.output));
  Tensor dmerged = pass.tensor(name + ".dmerged", pass.dtypes.product, {rows, d});
  pass.with_weights(index.output, [&](const ConstTensorView& w) { linear_input_gradient(pass, dout, w, dmerged); });
  pass.gradient_final(index.output);

  Tensor dqkv = pass.tensor(name + ".dqkv", pass.dtypes.product, {rows, 3 * d});
  {
    const auto [q, k, v] = heads_of_qkv(pass, ConstTensorView(saved.qkv));
    const auto [dq, dk, dv] = heads_of_qkv(pass, dqkv.view());
    const auto side_by_side = [&](const ConstTensorView& matrix) {
      return heads_of(pass, matrix, 0, pass.config.heads);
    };
    const Scratch scratch(rung.workspace_bytes(problem, Pass::backward), pass.stream);
    const device::NvtxRange range = pass.call("attention", rung);
    rung.backward(problem, {q, k, v, side_by_side(saved.merged), saved.lse, side_by_side(dmerged), dq, dk, dv},
                  {saved.kept.view().data, rung.saved_bytes(problem)}, scratch, pass.stream);
  }
  saved = {};
  dmerged = {};
  rotate(pass, tables, dqkv, Pass::backward);
  pass.made(name + ".dqkv", dqkv);

  Tensor dnormalized = pass.tensor(name + ".dnormalized", pass.dtypes.product, {rows, d});
  const ConstTensorView x = normalized();
  pass.with_weights(index.q, [&](const ConstTensorView& w) {
    linear_joined_backward(pass, dqkv, x, w, dnormalized, pass.gradient(index.q), kQueryKeyValue);
  });
  pass.gradient_final(index.q);
  pass.made(name + ".dnormalized", dnormalized);
  return dnormalized;
}

}  // namespace syslab::model
