#include "model/residual_norm.hpp"

#include <utility>

namespace syslab::model {
namespace {

rms_norm::Problem problem_of(const PassContext& pass, const ConstTensorView& w) {
  rms_norm::Problem problem;
  problem.rows = pass.rows();
  problem.dim = pass.config.d_model;
  problem.x_dtype = pass.dtypes.residual;
  problem.w_dtype = w.dtype;
  problem.y_dtype = pass.dtypes.normalized;
  return problem;
}

void run(const PassContext& pass, const std::string& name, bool add, const ConstTensorView& x,
         const ConstTensorView& delta, const ConstTensorView& w, NormSaved& saved) {
  const device::NvtxRange part = pass.part(name);
  if (saved.rstd.empty()) saved.rstd = pass.tensor(name + ".rstd", pass.dtypes.statistics, {pass.rows()});
  saved.normalized = pass.tensor(name + ".normalized", pass.dtypes.normalized, {pass.rows(), pass.config.d_model});
  rms_norm::Problem problem = problem_of(pass, w);
  problem.add = add;
  const rms_norm::Rung& rung = *pass.kernels.rms_norm;
  const Scratch scratch(rung.workspace_bytes(problem, Pass::forward), pass.stream);
  const device::NvtxRange range = pass.call("rms_norm", rung);
  rung.forward(problem, {x, delta, w, saved.residual, saved.normalized, saved.rstd}, scratch, pass.stream);
}

}  // namespace

void residual_norm(const PassContext& pass, const std::string& name, int weight, ResidualStream& stream,
                   NormSaved& saved) {
  const bool begins = stream.at == nullptr;
  saved.residual = begins ? std::move(stream.begins)
                          : pass.tensor(name + ".residual", pass.dtypes.residual, {pass.rows(), pass.config.d_model});
  pass.with_weights(weight, [&](const ConstTensorView& w) {
    run(pass, name, !begins, begins ? saved.residual.view() : stream.at->view(), stream.delta, w, saved);
  });
  stream.delta = {};
  stream.at = &saved.residual;
  pass.made(name + ".residual", saved.residual);
  pass.made(name + ".normalized", saved.normalized);
}

ConstTensorView normalized_of(const PassContext& pass, const std::string& name, int weight, NormSaved& saved) {
  if (saved.normalized.empty()) {
    pass.with_weights(weight, [&](const ConstTensorView& w) { run(pass, name, false, saved.residual, {}, w, saved); });
    pass.made(name + ".normalized", saved.normalized);
  }
  return saved.normalized;
}

void residual_norm_backward(const PassContext& pass, const std::string& name, int weight, NormSaved saved,
                            const ConstTensorView& dnormalized, Tensor& dresidual) {
  const device::NvtxRange part = pass.part(name);
  ConstTensorView arriving;
  if (dresidual.empty()) {
    dresidual = pass.tensor("dresidual", pass.dtypes.residual, {pass.rows(), pass.config.d_model});
  } else {
    arriving = dresidual;
  }
  pass.with_weights(weight, [&](const ConstTensorView& w) {
    rms_norm::Problem problem = problem_of(pass, w);
    problem.y_dtype = dnormalized.dtype;
    const rms_norm::Rung& rung = *pass.kernels.rms_norm;
    const Scratch scratch(rung.workspace_bytes(problem, Pass::backward), pass.stream);
    const device::NvtxRange range = pass.call("rms_norm", rung);
    const GradientPlace dw = pass.gradient(weight);
    rung.backward(problem, {dnormalized, saved.residual, w, saved.rstd, arriving, dresidual, dw.view, dw.add}, scratch,
                  pass.stream);
  });
  pass.made(name + ".dresidual", dresidual);
  pass.gradient_final(weight);
}

}  // namespace syslab::model
