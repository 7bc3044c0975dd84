// The few distributions that intervals and tests need, at any real number of degrees of freedom.
//
// Relative accuracy of probabilities and quantiles: 1e-10 or better for 0.5 ≤ dof ≤ 1e6 and tails down to 1e-100;
// tests/stats compares them with closed forms and published tables.
#pragma once

#include <cstddef>

namespace syslab::stats {

double normal_cdf(double z);
// Inverse of normal_cdf; ∓∞ at p = 0 and 1, NaN outside [0, 1].
double normal_quantile(double p);

// P(|T| ≥ |t|) of Student's t, which keeps its relative accuracy where 1 − P(|T| < |t|) would lose it; an infinite dof
// is the normal distribution. NaN for dof ≤ 0.
double student_t_two_sided_p(double t, double dof);
// The t with P(T ≤ t) = p; ∓∞ at p = 0 and 1, NaN outside [0, 1] or for dof ≤ 0.
double student_t_quantile(double p, double dof);

// Of H0: the true value is `distance` from the estimate, which has a standard_error and its dof. With an error of zero
// only no distance at all is likely.
template <typename Estimate>
double p_of_distance(double distance, const Estimate& estimate) {
  if (estimate.standard_error > 0) return student_t_two_sided_p(distance / estimate.standard_error, estimate.dof);
  return distance == 0 ? 1 : 0;
}

// The ranks (r, n + 1 − r), counted from one, of the order statistics of n values that bracket the median with at least
// `confidence`: r is the largest with P(Binomial(n, 1/2) < r) ≤ (1 − confidence) / 2. Zero when even [min, max] covers
// too rarely (n < 6 at 95 %). Source: Conover, "Practical Nonparametric Statistics", 3.2.
std::size_t median_rank(std::size_t n, double confidence);

}  // namespace syslab::stats
