// Two walks of AdamW whose gradients are apart by roundings stay within reach of each other, and come near to it.
#include "train/reach_of_rounding.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/random.hpp"

namespace syslab::train {
namespace {

constexpr int kSteps = 6;

struct Moments {
  double m = 0, v = 0;

  // The step, from the hand-out's formulas.
  double take(const adamw::Options& options, double g, int t) {
    m = options.beta1 * m + (1 - options.beta1) * g;
    v = options.beta2 * v + (1 - options.beta2) * g * g;
    const double rest1 = 1 - std::pow(options.beta1, t), rest2 = 1 - std::pow(options.beta2, t);
    if (options.eps_mode == adamw::EpsMode::corrected)
      return options.lr * m / rest1 / (std::sqrt(v / rest2) + options.eps);
    return options.lr * std::sqrt(rest2) / rest1 * m / (std::sqrt(v) + options.eps);
  }
};

// The largest ratio of how far two steps are apart to the reach, of many walks.
double largest_ratio(const adamw::Options& options) {
  double largest = 0;
  const RandomStream random(5);
  for (std::uint64_t walk = 0; walk < 20'000; ++walk) {
    ReachOfRounding reach(options);
    Moments exact, other;
    for (int t = 1; t <= kSteps; ++t) {
      const std::uint64_t at = 4 * (walk * kSteps + static_cast<std::uint64_t>(t));
      // Gradients and their roundings from 1e-10 to 1: one may be much larger than the other, and in one step only.
      const double g = std::pow(10, -5 + 2 * random.normal(at)) * (random.bits(at + 1) % 2 == 0 ? 1 : -1);
      const double rounding = std::pow(10, -7 + 2 * random.normal(at + 2));
      const double off = random.bits(at + 3) % 2 == 0 ? rounding : -rounding;
      reach.step(rounding);
      const double apart = std::abs(exact.take(options, g, t) - other.take(options, g + off, t));
      largest = std::max(largest, apart / (reach.of(exact.m, exact.v) + 1e-15 * options.lr));
    }
  }
  return largest;
}

TEST(ReachOfRounding, IsNotExceededAndNearlyAttained) {
  for (const adamw::EpsMode mode : {adamw::EpsMode::uncorrected, adamw::EpsMode::corrected}) {
    for (const double eps : {1e-8, 0.0, 1e-4}) {
      for (const double beta1 : {0.9, 0.0}) {
        const double ratio = largest_ratio({.lr = 1e-2, .beta1 = beta1, .eps = eps, .eps_mode = mode});
        EXPECT_LE(ratio, 1 + 1e-9) << eps << " " << beta1;
        EXPECT_GT(ratio, 0.8) << eps << " " << beta1;
      }
    }
  }
}

TEST(ReachOfRounding, IsAWholeStepOfNothingAndNextToNothingOfALargeGradient) {
  const adamw::Options options{.lr = 1e-2};
  ReachOfRounding reach(options);
  EXPECT_EQ(reach.of(0, 0), 0) << "before any step";
  reach.step(1e-5);
  EXPECT_NEAR(reach.of(0, 0), options.lr, 1e-9);
  Moments one;
  one.take(options, 1, 1);
  EXPECT_NEAR(reach.of(one.m, one.v), options.lr * 2e-5, 1e-9);
  ReachOfRounding none(options);
  none.step(0);
  EXPECT_EQ(none.of(0, 0), 0);
  none.step(1e-5);
  EXPECT_GT(none.of(0, 0), 0);
}

}  // namespace
}  // namespace syslab::train
