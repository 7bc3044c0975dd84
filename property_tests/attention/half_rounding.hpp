// How far rounding to half precision moves the outputs of a right kernel: standard deviations to first order.
//
// The model is that of ops/attention/error_bound.hpp: P̃ and dS may be rounded before they enter a product, dS also
// through a P that was kept, and every output is rounded when it is stored; all else is fp32 and has bounds of its own.
// Rounding to nearest is off by at most half a step, evenly spread: a variance of a third of its square. The step of an
// output is known, s(x) = max(u·2^⌊log₂|x|⌋, t), t half of fp16's smallest subnormal; P̃ and dS may have been scaled
// before, so theirs is at most that of c(x) = max(u·|x|, t). With X = dP − D and E² = c²(P)·X² + c²(dS), three times
// the variances are
//
//   O_id    s²(O) + Σ_j c²(P)·max(V², (V − O)²)               the sum of weights is of P̃ or of P
//   D_i     Σ_d s²(O)·dO² + Σ_j c²(P)·max(dP², X²)            D of the rounded O, and of rounded weights
//   dV_jd   s²(dV) + Σ_i c²(P)·dO²
//   dQ_id   s²(dQ) + scale²·(Σ_j E²·K² + D_i·(Σ_j P·K)²)
//   dK_jd   s²(dK) + scale²·Σ_i (E² + D_i·P²)·Q²
//
// and those of Σ error·x, x the exact gradient, follow by putting K_j·x_i, Q_i·x_j and dO_i·x_j in place of K, Q and
// dO.
#pragma once

#include <vector>

#include "ops/attention/oracle/oracle.hpp"
#include "property_tests/attention/sample.hpp"

namespace syslab::attention {

struct HalfRounding {
  std::vector<double> deviation;  // of each element's error
  double along = 0;               // of Σ error·x
  // Errors that are independent of each other: those of a row are sums of the same roundings, one for each key or
  // query, of which a quarter counts where weights are of one order.
  double independent = 0;
};

HalfRounding rounding_of_output(const Sample& sample, const ForwardOracle& exact);

struct GradientRounding {
  HalfRounding dq, dk, dv;
};
GradientRounding rounding_of_gradients(const Sample& sample, const BackwardOracle& exact);

}  // namespace syslab::attention
