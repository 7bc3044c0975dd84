#include "stats/distributions.hpp"

#include <cmath>
#include <limits>
#include <numbers>

#include "stats/not_a_number.hpp"

namespace syslab::stats {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Γ(a + 1/2) / Γ(a). The difference of two lgamma loses digits as a grows; there the asymptotic series (DLMF 5.11.13)
// has long converged: its next term is below 2e-14 at a = 50.
double gamma_half_step(double a) {
  if (a < 50) return std::exp(std::lgamma(a + 0.5) - std::lgamma(a));
  const double u = 1 / a;
  return std::sqrt(a) *
         (1 + u * (-1.0 / 8 + u * (1.0 / 128 + u * (5.0 / 1024 + u * (-21.0 / 32768 + u * (-399.0 / 262144))))));
}

// The continued fraction of the incomplete beta function, DLMF 8.17.22, by the modified Lentz algorithm (Thompson and
// Barnett 1986). Converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr int kLimit = 100'000;
  const auto away_from_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int m = 1; m < kLimit; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    fraction *= c * d;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    fraction *= c * d;
    if (std::abs(c * d - 1) < 1e-15) break;
  }
  return fraction;
}

// P(|T| ≥ t) for t ≥ 0 = I_x(ν/2, 1/2) with x = ν / (ν + t²) (DLMF 8.17 and 7.18 of Johnson & Kotz). Both x and 1 − x
// are formed without a subtraction.
double two_sided_tail(double t, double dof) {
  if (t == 0) return 1;
  const double a = dof / 2;
  const double scaled = t / std::sqrt(dof);
  const double x = 1 / (1 + scaled * scaled);
  const double y = scaled > 1 ? 1 / (1 + 1 / (scaled * scaled)) : scaled * scaled * x;
  const double log_x = -std::log1p(scaled * scaled);
  const double factor = std::exp(a * log_x) * std::sqrt(y) * gamma_half_step(a) / std::sqrt(std::numbers::pi);
  if (x < (a + 1) / (a + 2.5)) return factor * beta_fraction(a, 0.5, x) / a;
  return 1 - factor * beta_fraction(0.5, a, y) / 0.5;
}

double student_t_density(double t, double dof) {
  return gamma_half_step(dof / 2) / std::sqrt(dof * std::numbers::pi) *
         std::exp(-(dof + 1) / 2 * std::log1p(t * t / dof));
}

double normal_upper_tail(double z) { return 0.5 * std::erfc(z / std::numbers::sqrt2); }

// z ≥ 0 with upper tail q ≤ 1/2: the rational start of Abramowitz & Stegun 26.2.23 (error < 4.5e-4), then Halley steps
// on the tail, each of which triples the number of good digits.
double normal_from_tail(double q) {
  const double u = std::sqrt(-2 * std::log(q));
  double z = u - (2.515517 + u * (0.802853 + u * 0.010328)) / (1 + u * (1.432788 + u * (0.189269 + u * 0.001308)));
  for (int step = 0; step < 3; ++step) {
    const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
    if (density == 0) break;
    const double excess = (normal_upper_tail(z) - q) / density;
    z += excess / (1 - z * excess / 2);
  }
  return z;
}

// t ≥ 0 with upper tail q < 1/2. Newton from the normal quantile: it lies below the root (t has the heavier tail), and
// the tail is convex, so the steps rise towards the root and cannot overshoot.
double t_from_tail(double q, double dof) {
  double t = normal_from_tail(q);
  for (int step = 0; step < 2000; ++step) {
    const double rise = (two_sided_tail(t, dof) / 2 - q) / student_t_density(t, dof);
    if (!std::isfinite(rise)) break;
    t += rise;
    if (std::abs(rise) <= 1e-14 * t) break;
  }
  return t;
}

}  // namespace

double normal_cdf(double z) { return normal_upper_tail(-z); }

double normal_quantile(double p) {
  if (!(p >= 0 && p <= 1)) return kNotANumber;
  if (p == 0) return -kInfinity;
  if (p == 1) return kInfinity;
  if (p == 0.5) return 0;
  return p < 0.5 ? -normal_from_tail(p) : normal_from_tail(1 - p);
}

double student_t_two_sided_p(double t, double dof) {
  if (std::isnan(t) || !(dof > 0)) return kNotANumber;
  if (std::isinf(t)) return 0;
  if (std::isinf(dof)) return 2 * normal_upper_tail(std::abs(t));
  return two_sided_tail(std::abs(t), dof);
}

double student_t_quantile(double p, double dof) {
  if (!(p >= 0 && p <= 1) || !(dof > 0)) return kNotANumber;
  if (p == 0) return -kInfinity;
  if (p == 1) return kInfinity;
  if (p == 0.5) return 0;
  if (std::isinf(dof)) return normal_quantile(p);
  return p < 0.5 ? -t_from_tail(p, dof) : t_from_tail(1 - p, dof);
}

std::size_t median_rank(std::size_t n, double confidence) {
  const double tail_allowed = (1.0 - confidence) / 2.0;
  const double log_all = -static_cast<double>(n) * std::log(2.0);
  double tail = 0.0;
  std::size_t rank = 0;
  while (rank < (n + 1) / 2) {
    const double k = static_cast<double>(rank);
    const double log_choose =
        std::lgamma(static_cast<double>(n) + 1) - std::lgamma(k + 1) - std::lgamma(static_cast<double>(n) - k + 1);
    tail += std::exp(log_choose + log_all);
    if (tail > tail_allowed) break;
    ++rank;
  }
  return rank;
}

}  // namespace syslab::stats
