// A normalisation with all its tensors on the host.
#pragma once

#include "ops/rms_norm/oracle.hpp"
#include "tests/ops/model_tensors.hpp"

namespace syslab::rms_norm {

using ops::Tensor;

inline Problem problem_of(DType dtype, std::int64_t rows, std::int64_t dim, bool add = false) {
  return {.rows = rows,
          .dim = dim,
          .x_dtype = dtype,
          .w_dtype = ops::statistics_dtype(dtype),
          .y_dtype = dtype,
          .add = add};
}

struct Instance {
  Problem problem;
  Tensor x, delta, w, h, y, rstd;  // forward
  Tensor dy, dh, dx, dw;           // backward, of the h that lies in `kept()`
  bool with_dh = true;

  explicit Instance(const Problem& p, unsigned seed = 1, std::int64_t gap = 0)
      : problem(p),
        x(Tensor::matrix(p.x_dtype, p.rows, p.dim, gap)),
        delta(Tensor::matrix(p.y_dtype, p.rows, p.dim, gap)),
        w(p.w_dtype, {p.dim}),
        h(Tensor::matrix(p.x_dtype, p.rows, p.dim, gap)),
        y(Tensor::matrix(p.y_dtype, p.rows, p.dim, gap)),
        rstd(p.statistics(), {p.rows}),
        dy(Tensor::matrix(p.y_dtype, p.rows, p.dim, gap)),
        dh(Tensor::matrix(p.x_dtype, p.rows, p.dim, gap)),
        dx(Tensor::matrix(p.x_dtype, p.rows, p.dim, gap)),
        dw(p.statistics(), {p.dim}) {
    std::mt19937 random(seed);
    for (Tensor* input : {&x, &delta, &w, &dy, &dh}) input->fill_normal(random);
  }

  Tensor& kept() { return problem.add ? h : x; }
  ForwardArgs forward_args() {
    if (!problem.add) return {x.view(), {}, w.view(), {}, y.view(), rstd.view()};
    return {x.view(), delta.view(), w.view(), h.view(), y.view(), rstd.view()};
  }
  BackwardArgs backward_args() {
    return {dy.view(), kept().view(), w.view(), rstd.view(), with_dh ? dh.view() : TensorView{}, dx.view(), dw.view()};
  }

  void run(const Rung& rung, ops::Workspace workspace = {}) {
    validate(problem, forward_args());
    validate(problem, backward_args());
    rung.forward(problem, forward_args(), workspace, {});
    rung.backward(problem, backward_args(), workspace, {});
  }
};

// Largest error over its bound, of all that was written. Reads the inputs, which must be as they were.
inline double worst_ratio(Instance& i) {
  const ForwardArgs forward = i.forward_args();
  const BackwardArgs backward = i.backward_args();
  const ForwardOracle first = forward_oracle(i.problem, forward.x, forward.delta, forward.w);
  const BackwardOracle second =
      backward_oracle(i.problem, backward.dy, backward.h, backward.w, backward.rstd, backward.dh);
  double worst = std::max({ops::worst_ratio(i.y.values(), first.y.value, first.y.tolerance),
                           ops::worst_ratio(i.rstd.values(), first.rstd.value, first.rstd.tolerance),
                           ops::worst_ratio(i.dx.values(), second.dx.value, second.dx.tolerance),
                           ops::worst_ratio(i.dw.values(), second.dw.value, second.dw.tolerance)});
  if (i.problem.add) worst = std::max(worst, ops::worst_ratio(i.h.values(), first.h.value, first.h.tolerance));
  return worst;
}

}  // namespace syslab::rms_norm
