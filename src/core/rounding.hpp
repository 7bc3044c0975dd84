// Building blocks of rounding-error bounds (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., ch. 3).
#pragma once

#include <cmath>
#include <cstdint>

#include "core/dtype.hpp"
#include "core/host_device.hpp"

namespace syslab {

// γ_n = n·u / (1 − n·u): the relative error of n roundings in the worst case (Higham, Lemma 3.1). Infinite where n·u
// ≥ 1.
SYSLAB_HOST_DEVICE inline double gamma(std::int64_t n, double unit) {
  const double product = static_cast<double>(n) * unit;
  return product < 1.0 ? product / (1.0 - product) : INFINITY;
}

// γ̃_n = λ·√n·u: the same when roundings are independent and of mean zero (Higham & Mary, "A new approach to
// probabilistic rounding error analysis", SISC 41(5), 2019). It fails with probability at most 2·n·exp(−λ²/2); λ = 8
// makes that 2e-14·n.
SYSLAB_HOST_DEVICE inline double gamma_probable(std::int64_t n, double unit, double lambda = 8.0) {
  return lambda * std::sqrt(static_cast<double>(n)) * unit;
}

}  // namespace syslab
