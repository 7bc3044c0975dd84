#include "ops/adamw/oracle.hpp"

#include <algorithm>
#include <cmath>

#include "ops/adamw/rungs.hpp"

namespace syslab::adamw {
namespace {

struct Bounds {
  double p, m, v;
};

Bounds bounds_of(DType dtype, const StepNumbers<double>& n, double p, double m, double v, double g, double p_after,
                 double m_after, double v_after) {
  const double u = unit_roundoff(dtype), least = smallest_normal(dtype) * u;
  const double of_m = 3 * u * std::abs(n.beta1 * m) + 6 * u * std::abs(n.rest1 * g) + 3 * least;
  const double of_v = 3 * u * n.beta2 * v + 10 * u * n.rest2 * g * g + 3 * least;
  const double root = std::sqrt(v_after), denominator = root * n.root_factor + n.eps;
  const double of_root = std::min(root > 0 ? of_v / root : INFINITY, std::sqrt(of_v)) * n.root_factor;
  const double relative = std::min((of_root + 5 * u * denominator) / denominator, 0.5);
  const double update = std::abs(n.step * m_after / denominator);
  // 1/(1 − r) ≤ 1 + 2r for r ≤ 1/2. First-order bounds would not cover a large r.
  const double of_update = update * (2 * relative + 8 * u) + n.step * of_m * (1 + 2 * relative) / denominator;
  return {6 * u * std::max(std::abs(p), std::abs(p_after)) + 3 * u * update + of_update + 3 * least, of_m, of_v};
}

}  // namespace

Oracle oracle(const Problem& problem, const ConstTensorView& p, const ConstTensorView& m, const ConstTensorView& v,
              const ConstTensorView& g, const Scalars& scalars, double clip) {
  Oracle found;
  found.p.value = to_doubles(p);
  found.m.value = to_doubles(m);
  found.v.value = to_doubles(v);
  const std::vector<double> gradients = to_doubles(g);
  const std::size_t elements = gradients.size();
  for (Expected* one : {&found.p, &found.m, &found.v}) one->tolerance.assign(elements, 0.0);
  if (scalars.skip == 0) {
    const StepNumbers<double>& n = scalars.in_f64;
    for (std::size_t i = 0; i < elements; ++i) {
      const double p_before = found.p.value[i], m_before = found.m.value[i], v_before = found.v.value[i];
      step_element(n, n.grad_scale * clip, found.p.value[i], found.m.value[i], found.v.value[i], gradients[i]);
      const Bounds bounds =
          bounds_of(problem.dtype, n, p_before, m_before, v_before, gradients[i] * n.grad_scale * clip,
                    found.p.value[i], found.m.value[i], found.v.value[i]);
      found.p.tolerance[i] = bounds.p;
      found.m.tolerance[i] = bounds.m;
      found.v.tolerance[i] = bounds.v;
    }
  }
  if (problem.copy_dtype) {
    const double unit = unit_roundoff(*problem.copy_dtype), least = smallest_normal(*problem.copy_dtype) * unit;
    found.copy = found.p;
    for (std::size_t i = 0; i < elements; ++i) {
      // Through fp32 where p is fp64: one rounding more.
      found.copy.tolerance[i] += (unit + 0x1p-24) * (std::abs(found.p.value[i]) + found.p.tolerance[i]) + least;
    }
  }
  return found;
}

}  // namespace syslab::adamw
