// How far what lists of operations computed is from the oracles, over their bounds and what rounding after every
// operation may add. Of instances whose inputs are as they were.
#pragma once

#include "ops/cross_entropy/eager.hpp"
#include "ops/rms_norm/eager.hpp"
#include "ops/rope/eager.hpp"
#include "ops/swiglu/eager.hpp"
#include "tests/ops/cross_entropy_fixture.hpp"
#include "tests/ops/rms_norm_fixture.hpp"
#include "tests/ops/rope_fixture.hpp"
#include "tests/ops/swiglu_fixture.hpp"

namespace syslab::framework {

template <typename Expected>
double ratio_of(const ops::Tensor& found, const Expected& expected) {
  return ops::worst_ratio(found.values(), expected.value, expected.tolerance);
}

inline double worst(rms_norm::Instance& i) {
  const rms_norm::ForwardArgs forward = i.forward_args();
  const rms_norm::BackwardArgs backward = i.backward_args();
  const auto first = rms_norm::forward_oracle(i.problem, forward.x, forward.delta, forward.w);
  auto second = rms_norm::backward_oracle(i.problem, backward.dy, backward.h, backward.w, backward.rstd, backward.dh);
  rms_norm::eager_allow(i.problem, backward.dh, second);
  const double found = std::max(
      {ratio_of(i.y, first.y), ratio_of(i.rstd, first.rstd), ratio_of(i.dx, second.dx), ratio_of(i.dw, second.dw)});
  return i.problem.add ? std::max(found, ratio_of(i.h, first.h)) : found;
}

inline double worst(swiglu::Instance& i) {
  auto out = swiglu::forward_oracle(i.problem, i.half(0), i.half(1));
  auto gradients = swiglu::backward_oracle(i.problem, i.half(0), i.half(1), i.dout.view());
  swiglu::eager_allow(i.problem, i.half(0), i.half(1), out);
  swiglu::eager_allow(i.problem, i.half(0), i.half(1), i.dout.view(), gradients);
  return std::max({ratio_of(i.out, out), ratio_of(i.again, out), ratio_of(i.dgate, gradients.dgate),
                   ratio_of(i.dup, gradients.dup)});
}

inline double worst(rope::Instance& i) {
  const auto y = rope::oracle(i.problem, Pass::forward, i.x.view(), i.cos.view(), i.sin.view());
  auto dx = rope::oracle(i.problem, Pass::backward, i.dy.view(), i.cos.view(), i.sin.view());
  rope::eager_allow(i.problem, Pass::backward, i.dy.view(), i.cos.view(), i.sin.view(), dx);
  return std::max(ratio_of(i.y, y), ratio_of(i.dx, dx));
}

inline double worst(cross_entropy::Instance& i) {
  auto exact = cross_entropy::oracle(i.problem, i.logits.view(), i.targets, i.factor);
  cross_entropy::eager_allow(i.problem, i.logits.view(), i.targets, i.factor, exact);
  return std::max({ratio_of(i.row_loss, exact.row_loss), ratio_of(i.lse, exact.lse), ratio_of(i.loss, exact.loss),
                   ratio_of(i.dlogits, exact.dlogits)});
}

}  // namespace syslab::framework
