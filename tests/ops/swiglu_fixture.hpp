// A gate with all its tensors on the host; gate and up are the halves of one matrix.
#pragma once

#include "ops/swiglu/oracle.hpp"
#include "tests/ops/model_tensors.hpp"

namespace syslab::swiglu {

using ops::Tensor;

struct Instance {
  Problem problem;
  Tensor both, dout;              // (rows, 2·dim): gate, up
  Tensor out, dgate, dup, again;  // again: out of the backward pass

  explicit Instance(const Problem& p, unsigned seed = 1, std::int64_t gap = 0, double scale = 2)
      : problem(p),
        both(Tensor::matrix(p.dtype, p.rows, 2 * p.dim, gap)),
        dout(Tensor::matrix(p.dtype, p.rows, p.dim, gap)),
        out(Tensor::matrix(p.dtype, p.rows, p.dim, gap)),
        dgate(out),
        dup(out),
        again(out) {
    std::mt19937 random(seed);
    both.fill_normal(random, scale);
    dout.fill_normal(random);
  }

  TensorView half(std::int64_t which) {
    TensorView view = both.view();
    view.shape = Shape{problem.rows, problem.dim};
    view.data = both.bytes.data() + static_cast<std::size_t>(which * problem.dim) * size_of(problem.dtype);
    return view;
  }
  ForwardArgs forward_args() { return {half(0), half(1), out.view()}; }
  BackwardArgs backward_args() { return {half(0), half(1), dout.view(), dgate.view(), dup.view(), again.view()}; }

  void run(const Rung& rung) {
    validate(problem, forward_args());
    validate(problem, backward_args());
    rung.forward(problem, forward_args(), {}, {});
    rung.backward(problem, backward_args(), {}, {});
  }
};

inline double worst_ratio(Instance& i) {
  const Expected out = forward_oracle(i.problem, i.half(0), i.half(1));
  const BackwardOracle gradients = backward_oracle(i.problem, i.half(0), i.half(1), i.dout.view());
  return std::max({ops::worst_ratio(i.out.values(), out.value, out.tolerance),
                   ops::worst_ratio(i.again.values(), out.value, out.tolerance),
                   ops::worst_ratio(i.dgate.values(), gradients.dgate.value, gradients.dgate.tolerance),
                   ops::worst_ratio(i.dup.values(), gradients.dup.value, gradients.dup.tolerance)});
}

}  // namespace syslab::swiglu
