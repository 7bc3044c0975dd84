#include "model/feed_forward_layer.hpp"

#include "model/linear.hpp"

namespace syslab::model {
namespace {

constexpr int kGateAndUp = 2;  // projections: W1, W3

template <typename Call>
void run(const PassContext& pass, Pass direction, const Call& call) {
  swiglu::Problem problem;
  problem.rows = pass.rows();
  problem.dim = pass.config.d_ff;
  problem.dtype = pass.dtypes.product;
  const Scratch scratch(pass.kernels.swiglu->workspace_bytes(problem, direction), pass.stream);
  const device::NvtxRange range = pass.call("swiglu", *pass.kernels.swiglu);
  call(problem, scratch);
}

}  // namespace

Tensor feed_forward(const PassContext& pass, const std::string& name, const LayerIndices& index,
                    const ConstTensorView& normalized, FeedForwardSaved& saved, Output output) {
  const device::NvtxRange part = pass.part(name);
  const std::int64_t rows = pass.rows(), f = pass.config.d_ff;
  saved.gate_up = pass.tensor(name + ".gate_up", pass.dtypes.product, {rows, 2 * f});
  const TensorView gate = columns(saved.gate_up.view(), 0, f), up = columns(saved.gate_up.view(), f, f);
  pass.with_weights(index.w1,
                    [&](const ConstTensorView& w) { linear_joined(pass, normalized, w, saved.gate_up, kGateAndUp); });
  pass.made(name + ".gate_up", saved.gate_up);
  const bool keeps = pass.kernels.keeps_all;
  if (output == Output::unwanted && !keeps) return {};

  saved.gated = pass.tensor(name + ".gated", pass.dtypes.product, {rows, f});
  run(pass, Pass::forward, [&](const swiglu::Problem& problem, ops::Workspace workspace) {
    pass.kernels.swiglu->forward(problem, {gate, up, saved.gated}, workspace, pass.stream);
  });
  pass.made(name + ".gated", saved.gated);
  if (output == Output::unwanted) return {};

  Tensor out = pass.tensor(name + ".out", pass.dtypes.product, {rows, pass.config.d_model});
  pass.with_weights(index.w2, [&](const ConstTensorView& w) { linear(pass, saved.gated, w, out); });
  pass.made(name + ".out", out);
  if (!keeps) saved.gated = {};
  return out;
}

Tensor feed_forward_backward(const PassContext& pass, const std::string& name, const LayerIndices& index,
                             const Given& normalized, FeedForwardSaved saved, const ConstTensorView& dout) {
  const device::NvtxRange part = pass.part(name);
  const std::int64_t rows = pass.rows(), f = pass.config.d_ff;
  const auto weight_gradient = [&] { linear_weight_gradient(pass, dout, saved.gated, pass.gradient(index.w2)); };
  // `gated` and its gradient share one buffer. If `gated` was kept, the gradient overwrites it once that of W2 is
  // computed. Otherwise the gate's backward pass computes `gated` again into the gradient, which is not read any more,
  // and the gradient of W2 comes after that.
  const bool kept = !saved.gated.empty();
  if (kept) {
    weight_gradient();
  } else {
    saved.gated = pass.tensor(name + ".gated", pass.dtypes.product, {rows, f});
  }
  const TensorView dgated = saved.gated, again = kept ? TensorView{} : dgated;
  pass.with_weights(index.w2, [&](const ConstTensorView& w) { linear_input_gradient(pass, dout, w, dgated); });
  if (kept) pass.gradient_final(index.w2);

  // Gradients of gate and up overwrite gate and up.
  const TensorView gate = columns(saved.gate_up.view(), 0, f), up = columns(saved.gate_up.view(), f, f);
  run(pass, Pass::backward, [&](const swiglu::Problem& problem, ops::Workspace workspace) {
    pass.kernels.swiglu->backward(problem, {gate, up, dgated, gate, up, again}, workspace, pass.stream);
  });
  if (!kept) {
    pass.made(name + ".gated", saved.gated);
    weight_gradient();
    pass.gradient_final(index.w2);
  }
  pass.made(name + ".dgate_up", saved.gate_up);
  saved.gated = {};

  Tensor dnormalized = pass.tensor(name + ".dnormalized", pass.dtypes.product, {rows, pass.config.d_model});
  const ConstTensorView x = normalized();
  pass.with_weights(index.w1, [&](const ConstTensorView& w) {
    linear_joined_backward(pass, saved.gate_up, x, w, dnormalized, pass.gradient(index.w1), kGateAndUp);
  });
  pass.gradient_final(index.w1);
  pass.made(name + ".dnormalized", dnormalized);
  return dnormalized;
}

}  // namespace syslab::model
