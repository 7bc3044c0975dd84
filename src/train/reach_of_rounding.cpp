#include "train/reach_of_rounding.hpp"

#include <algorithm>
#include <cmath>

namespace syslab::train {

void ReachOfRounding::step(double rounding) {
  ++steps_;
  first_ = options_.beta1 * first_ + (1 - options_.beta1) * rounding;
  second_ = options_.beta2 * second_ + (1 - options_.beta2) * rounding * rounding;
  rest1_ = 1 - std::pow(options_.beta1, steps_);
  rest2_ = 1 - std::pow(options_.beta2, steps_);
  double squares = 0;
  for (int age = 0; age < steps_; ++age) {
    const double a = (1 - options_.beta1) * std::pow(options_.beta1, age) / rest1_,
                 b = (1 - options_.beta2) * std::pow(options_.beta2, age) / rest2_;
    squares += a == 0 ? 0 : a * a / b;
  }
  largest_ = std::sqrt(squares);
}

double ReachOfRounding::of(double m, double v) const {
  if (first_ == 0) return 0;
  const double eps = options_.eps / (options_.eps_mode == adamw::EpsMode::corrected ? 1 : std::sqrt(rest2_));
  const double size = std::sqrt(v / rest2_) + eps;
  if (size == 0) return options_.lr * largest_;
  const double apart = (first_ / rest1_ + largest_ * std::sqrt(second_ / rest2_)) / size;
  return options_.lr * std::min(apart, largest_ + std::abs(m) / rest1_ / size);
}

}  // namespace syslab::train
