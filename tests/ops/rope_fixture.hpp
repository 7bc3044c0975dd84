// A rotation with its tensors on the host.
#pragma once

#include "ops/rope/oracle.hpp"
#include "tests/ops/model_tensors.hpp"

namespace syslab::rope {

using ops::Tensor;

// Queries and keys of a fused (batch, seq, 3, heads/2, head_dim) buffer as one tensor of `heads` heads.
inline Strides fused_strides(const Problem& p) {
  const std::int64_t position = p.heads / 2 * 3 * p.head_dim;
  return {p.seq * position, p.head_dim, position, 1};
}

struct Instance {
  Problem problem;
  Tensor x, y;    // forward
  Tensor dy, dx;  // backward
  Tensor cos, sin;

  explicit Instance(const Problem& p, unsigned seed = 1) : Instance(p, contiguous_strides(shape_of(p)), seed) {}
  Instance(const Problem& p, const Strides& strides, unsigned seed = 1)
      : problem(p),
        x(p.x_dtype, shape_of(p), strides),
        y(p.y_dtype, shape_of(p), strides),
        dy(y),
        dx(x),
        cos(p.tables(), {p.seq + 2, p.head_dim / 2}),
        sin(cos) {
    std::mt19937 random(seed);
    x.fill_normal(random);
    dy.fill_normal(random);
    fill_tables(p.seq + 2, p.head_dim, 10000, cos.view(), sin.view());
  }

  static Shape shape_of(const Problem& p) { return {p.batch, p.heads, p.seq, p.head_dim}; }
  Args forward_args() { return {x.view(), cos.view(), sin.view(), y.view()}; }
  Args backward_args() { return {dy.view(), cos.view(), sin.view(), dx.view()}; }

  void run(const Rung& rung) {
    validate(problem, forward_args(), Pass::forward);
    validate(problem, backward_args(), Pass::backward);
    rung.forward(problem, forward_args(), {}, {});
    rung.backward(problem, backward_args(), {}, {});
  }
};

inline double worst_ratio(Instance& i) {
  const Expected y = oracle(i.problem, Pass::forward, i.x.view(), i.cos.view(), i.sin.view()),
                 dx = oracle(i.problem, Pass::backward, i.dy.view(), i.cos.view(), i.sin.view());
  return std::max(ops::worst_ratio(i.y.values(), y.value, y.tolerance),
                  ops::worst_ratio(i.dx.values(), dx.value, dx.tolerance));
}

}  // namespace syslab::rope
