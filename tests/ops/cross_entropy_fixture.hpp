// A cross-entropy with random logits and targets, its outputs, and how far they are from the oracle.
#pragma once

#include <vector>

#include "ops/cross_entropy/oracle.hpp"
#include "tests/ops/model_tensors.hpp"

namespace syslab::cross_entropy {

struct Instance {
  Problem problem;
  ops::Tensor logits, row_loss, lse, loss, scale, dlogits;
  std::vector<std::int64_t> targets;
  double factor = 3;  // what `scale` holds

  explicit Instance(const Problem& p, unsigned seed = 1, std::int64_t gap = 0, double spread = 3)
      : problem(p),
        logits(ops::Tensor::matrix(p.dtype, p.rows, p.classes, gap)),
        row_loss(p.statistics(), {p.rows}),
        lse(p.statistics(), {p.rows}),
        loss(p.statistics(), {1}),
        scale(p.statistics(), {1}),
        dlogits(ops::Tensor::matrix(p.dtype, p.rows, p.classes, gap)) {
    std::mt19937 random(seed);
    logits.fill_normal(random, spread);
    for (std::int64_t i = 0; i < p.rows; ++i) targets.push_back(random() % static_cast<unsigned>(p.classes));
    set_factor(factor);
  }
  void set_factor(double value) {
    factor = value;
    scale.set(0, value);
  }

  ForwardArgs forward_args() { return {logits.view(), targets.data(), row_loss.view(), lse.view(), loss.view()}; }
  BackwardArgs backward_args() { return {logits.view(), targets.data(), lse.view(), scale.view(), dlogits.view()}; }
  ForwardBackwardArgs both_args() {
    return {logits.view(), targets.data(), scale.view(), row_loss.view(), lse.view(), loss.view(), dlogits.view()};
  }

  void forward(const Rung& rung) {
    validate(problem, forward_args());
    rung.forward(problem, forward_args(), {}, {});
  }
  void backward(const Rung& rung) {
    validate(problem, backward_args());
    rung.backward(problem, backward_args(), {}, {});
  }
  void both(const Rung& rung) {
    validate(problem, both_args());
    rung.forward_backward(problem, both_args(), {}, {});
  }

  // Largest error over its bound in all outputs; `at_once`: the gradient was made with the loss, not from its lse.
  double worst(bool at_once) const {
    const Oracle exact = oracle(problem, logits.view(), targets, factor);
    const Expected gradient =
        at_once ? exact.dlogits : gradient_oracle(problem, logits.view(), targets, lse.view(), factor);
    const auto of = [](const ops::Tensor& found, const Expected& expected) {
      return ops::worst_ratio(found.values(), expected.value, expected.tolerance);
    };
    return std::max({of(row_loss, exact.row_loss), of(lse, exact.lse), of(loss, exact.loss), of(dlogits, gradient)});
  }
};

}  // namespace syslab::cross_entropy
