// An arena of parameters with random state and gradients, and how far a step's results are from the oracle.
#pragma once

#include <cmath>
#include <vector>

#include "ops/adamw/oracle.hpp"
#include "tests/ops/model_tensors.hpp"

namespace syslab::adamw {

struct Instance {
  Problem problem;
  ops::Tensor p, m, v, g, copy;
  alignas(16) Scalars scalars{};
  float clip = 0.7F;
  std::int64_t non_finite = 0;

  explicit Instance(const Problem& problem_, const Options& options = {}, unsigned seed = 1)
      : problem(problem_),
        p(problem.dtype, {problem.elements}),
        m(p),
        v(p),
        g(p),
        copy(problem.copy_dtype.value_or(DType::bf16), {problem.elements}) {
    std::mt19937 random(seed);
    p.fill_normal(random);
    m.fill_normal(random, 0.1);
    v.fill_normal(random, 0.1);
    std::vector<double> squares = v.values();
    for (double& square : squares) square = std::abs(square);
    v.set_all(squares);
    fill_gradient(seed + 1);
    scalars = scalars_of(options, 3, 0.25);
  }
  void fill_gradient(unsigned seed) {
    std::mt19937 random(seed);
    g.fill_normal(random, 4);
  }

  Args args() {
    return {p.view(), m.view(), v.view(),   g.view(), problem.copy_dtype ? copy.view() : TensorView{},
            &scalars, &clip,    &non_finite};
  }
  Oracle expected() const { return oracle(problem, p.view(), m.view(), v.view(), g.view(), scalars, clip); }

  double worst(const Oracle& exact) const {
    const auto of = [](const ops::Tensor& found, const Expected& expected) {
      return ops::worst_ratio(found.values(), expected.value, expected.tolerance);
    };
    const double state = std::max({of(p, exact.p), of(m, exact.m), of(v, exact.v)});
    return problem.copy_dtype ? std::max(state, of(copy, exact.copy)) : state;
  }
  // Takes a step and returns the largest error over its bound.
  double step(const Rung& rung) {
    const Oracle exact = expected();
    validate(problem, args());
    rung.step(problem, args(), {});
    return worst(exact);
  }
};

// Both orders of the decay with both places of eps.
inline std::vector<Options> variants() {
  std::vector<Options> all;
  for (const DecayOrder order : {DecayOrder::after, DecayOrder::before}) {
    for (const EpsMode mode : {EpsMode::uncorrected, EpsMode::corrected}) {
      all.push_back({.lr = 0.01, .weight_decay = 0.1, .decay_order = order, .eps_mode = mode});
    }
  }
  return all;
}

}  // namespace syslab::adamw
