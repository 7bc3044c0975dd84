// How far rounding may carry a weight in a step of AdamW.
//
// AdamW divides by the size of the gradient: an element with a gradient no larger than its own rounding error takes a
// whole step in a random direction. With the weights a_s that m̂ has for the gradient of each step s so far, and b_s
// that v̂ has (Σa = Σb = 1), the step is lr·m̂/(r + e), r = √v̂ and e the eps added to it. Of gradients that are off by
// at most ρ_s
//
//   |m̂' − m̂| ≤ A = Σ a_s·ρ_s          |r' − r| ≤ B = √Σ b_s·ρ_s²                   (r is a norm of gradients)
//   |m̂'| ≤ R·r', R = √Σ a_s²/b_s                                                   (Cauchy-Schwarz)
//   m̂'/(r' + e) − m̂/(r + e) = (m̂' − m̂)/(r + e) + m̂'/(r' + e)·(r − r')/(r + e)
//
// so that the steps are apart by at most lr·(A + R·B)/(r + e), and never by more than both are: lr·(|m̂|/(r + e) + R).
// R is 1 in the first step, hardly more in others.
#pragma once

#include "ops/adamw/adamw.hpp"

namespace syslab::train {

class ReachOfRounding {
 public:
  // For one weight, or many with the same gradient error ρ, from the first step on.
  explicit ReachOfRounding(const adamw::Options& options) : options_(options) {}

  // The next step's ρ.
  void step(double rounding);
  // After it, for a weight with these exact, uncorrected moments.
  double of(double m, double v) const;
  // R, in which no step exceeds lr·R.
  double largest_step() const { return largest_; }

 private:
  adamw::Options options_;
  int steps_ = 0;
  double first_ = 0, second_ = 0;               // the moments of ρ, uncorrected
  double rest1_ = 0, rest2_ = 0, largest_ = 0;  // 1 − βᵗ, and R
};

}  // namespace syslab::train
