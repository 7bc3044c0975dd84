#include "model/feed_forward_layer.hpp"

#include "model/linear.hpp"

namespace syslab::model {
namespace {

constexpr int kProjections = 2;  // W1, W3

template <typename Call>
void run(const Pass& pass, swiglu::Direction direction, const Call& call) {
  swiglu::Problem problem;
  problem.rows = pass.rows();
  problem.dim = pass.config.d_ff;
  problem.dtype = pass.dtypes.product;
  const Scratch scratch(pass.kernels.swiglu->workspace_bytes(problem, direction), pass.stream);
  const device::NvtxRange range = pass.call("swiglu", *pass.kernels.swiglu);
  call(problem, scratch);
}

}  // namespace

Tensor feed_forward(const Pass& pass, const std::string& name, const FeedForwardMatrices<ConstTensorView>& weights,
                    const ConstTensorView& normalized, FeedForwardSaved& saved, Output output) {
  const device::NvtxRange part = pass.part(name);
  const std::int64_t rows = pass.rows(), f = pass.config.d_ff;
  saved.gate_up = pass.tensor(name + ".gate_up", pass.dtypes.product, {rows, 2 * f});
  const TensorView gate = columns(saved.gate_up.view(), 0, f), up = columns(saved.gate_up.view(), f, f);
  linear_joined(pass, normalized, weights.w13, saved.gate_up, kProjections);
  pass.made(name + ".gate_up", saved.gate_up);

  saved.gated = pass.tensor(name + ".gated", pass.dtypes.product, {rows, f});
  run(pass, swiglu::Direction::forward, [&](const swiglu::Problem& problem, ops::Workspace workspace) {
    pass.kernels.swiglu->forward(problem, {gate, up, saved.gated}, workspace, pass.stream);
  });
  pass.made(name + ".gated", saved.gated);
  if (output == Output::unwanted) return {};

  Tensor out = pass.tensor(name + ".out", pass.dtypes.product, {rows, pass.config.d_model});
  linear(pass, saved.gated, weights.w2, out);
  pass.made(name + ".out", out);
  return out;
}

Tensor feed_forward_backward(const Pass& pass, const std::string& name,
                             const FeedForwardMatrices<ConstTensorView>& weights, const ConstTensorView& normalized,
                             FeedForwardSaved saved, const ConstTensorView& dout,
                             const FeedForwardMatrices<TensorView>& gradients, bool add) {
  const device::NvtxRange part = pass.part(name);
  const std::int64_t rows = pass.rows(), f = pass.config.d_ff;
  linear_weight_gradient(pass, dout, saved.gated, gradients.w2, add);
  // The gradient of `gated` may lie where `gated` was: its weights' gradient is made.
  const TensorView dgated = saved.gated;
  linear_input_gradient(pass, dout, weights.w2, dgated);

  // Gradients of gate and up lie where these were.
  const TensorView gate = columns(saved.gate_up.view(), 0, f), up = columns(saved.gate_up.view(), f, f);
  run(pass, swiglu::Direction::backward, [&](const swiglu::Problem& problem, ops::Workspace workspace) {
    pass.kernels.swiglu->backward(problem, {gate, up, dgated, gate, up, {}}, workspace, pass.stream);
  });
  pass.made(name + ".dgate_up", saved.gate_up);
  saved.gated = {};

  Tensor dnormalized = pass.tensor(name + ".dnormalized", pass.dtypes.product, {rows, pass.config.d_model});
  linear_joined_backward(pass, saved.gate_up, normalized, weights.w13, dnormalized, gradients.w13, kProjections, add);
  pass.made(name + ".dnormalized", dnormalized);
  return dnormalized;
}

}  // namespace syslab::model
