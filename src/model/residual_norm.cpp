#include "model/residual_norm.hpp"

#include <utility>

namespace syslab::model {
namespace {

rms_norm::Problem problem_of(const Pass& pass, const ConstTensorView& w) {
  rms_norm::Problem problem;
  problem.rows = pass.rows();
  problem.dim = pass.config.d_model;
  problem.x_dtype = pass.dtypes.residual;
  problem.w_dtype = w.dtype;
  problem.y_dtype = pass.dtypes.normalized;
  return problem;
}

void run(const Pass& pass, const std::string& name, const rms_norm::Problem& problem, const ConstTensorView& x,
         const ConstTensorView& delta, const ConstTensorView& w, NormSaved& saved) {
  const device::NvtxRange part = pass.part(name);
  saved.rstd = pass.tensor(name + ".rstd", pass.dtypes.statistics, {pass.rows()});
  saved.normalized = pass.tensor(name + ".normalized", pass.dtypes.normalized, {pass.rows(), pass.config.d_model});
  const rms_norm::Rung& rung = *pass.kernels.rms_norm;
  const Scratch scratch(rung.workspace_bytes(problem, rms_norm::Direction::forward), pass.stream);
  const device::NvtxRange range = pass.call("rms_norm", rung);
  rung.forward(problem, {x, delta, w, saved.residual, saved.normalized, saved.rstd}, scratch, pass.stream);
  pass.made(name + ".residual", saved.residual);
  pass.made(name + ".normalized", saved.normalized);
}

}  // namespace

void residual_norm(const Pass& pass, const std::string& name, const ConstTensorView& w, ResidualStream& stream,
                   NormSaved& saved) {
  rms_norm::Problem problem = problem_of(pass, w);
  if (stream.at == nullptr) {
    saved.residual = std::move(stream.begins);
    run(pass, name, problem, saved.residual, {}, w, saved);
  } else {
    problem.add = true;
    saved.residual = pass.tensor(name + ".residual", pass.dtypes.residual, {pass.rows(), pass.config.d_model});
    run(pass, name, problem, *stream.at, stream.delta, w, saved);
    stream.delta = {};
  }
  stream.at = &saved.residual;
}

void residual_norm_backward(const Pass& pass, const std::string& name, const ConstTensorView& w, NormSaved saved,
                            const ConstTensorView& dnormalized, Tensor& dresidual, const TensorView& dw, bool add) {
  const device::NvtxRange part = pass.part(name);
  rms_norm::Problem problem = problem_of(pass, w);
  problem.y_dtype = dnormalized.dtype;
  const rms_norm::Rung& rung = *pass.kernels.rms_norm;
  ConstTensorView arriving;
  if (dresidual.empty()) {
    dresidual = pass.tensor("dresidual", pass.dtypes.residual, {pass.rows(), pass.config.d_model});
  } else {
    arriving = dresidual;
  }
  const Scratch scratch(rung.workspace_bytes(problem, rms_norm::Direction::backward), pass.stream);
  const device::NvtxRange range = pass.call("rms_norm", rung);
  rung.backward(problem, {dnormalized, saved.residual, w, saved.rstd, arriving, dresidual, dw, add}, scratch,
                pass.stream);
  pass.made(name + ".dresidual", dresidual);
}

}  // namespace syslab::model
