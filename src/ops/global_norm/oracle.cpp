#include "ops/global_norm/oracle.hpp"

#include <cmath>

#include "core/rounding.hpp"
#include "ops/global_norm/rungs.hpp"

namespace syslab::global_norm {

Oracle oracle(const Problem& problem, const ConstTensorView& g, double max_norm, double grad_scale) {
  Oracle found;
  long double sum = 0;
  for (const double value : to_doubles(g)) {
    sum += static_cast<long double>(value) * value;
    found.non_finite += std::isfinite(value) ? 0 : 1;
  }
  const double norm = grad_scale * static_cast<double>(std::sqrt(sum)), factor = clip_factor(norm, max_norm);
  const double u = unit_roundoff(problem.statistics()),
               carried = gamma(problem.elements + 4, unit_roundoff(DType::f64));
  found.norm = {{norm}, {norm * (u + carried)}};
  // Computed from the norm before or after its rounding.
  found.factor = {{factor}, {factor * (3 * u + 2 * carried)}};
  return found;
}

Expected scale_oracle(const Problem& problem, const ConstTensorView& g, double factor) {
  Expected found{to_doubles(g), {}};
  const double u = unit_roundoff(problem.statistics()), stored = unit_roundoff(problem.dtype);
  const double least = smallest_normal(problem.dtype) * stored;
  for (double& value : found.value) {
    value *= factor;
    found.tolerance.push_back((u + stored) * 1.01 * std::abs(value) + least);
  }
  return found;
}

}  // namespace syslab::global_norm
