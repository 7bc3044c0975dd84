#include <bit>
#include <cmath>
#include <numeric>

#include "ops/cross_entropy/oracle.hpp"
#include "ops/exp_of_negative.hpp"
#include "tests/ops/cross_entropy_fixture.hpp"
#include "tests/ops/host_rungs.hpp"

namespace syslab::cross_entropy {
namespace {

using ops::usage_error;
using ops::worst_ratio;

TEST(CrossEntropy, OfEqualLogitsIsTheLogarithmOfTheClasses) {
  Instance i({.rows = 3, .classes = 7, .dtype = DType::f64});
  i.logits.set_all(std::vector<double>(21, 2.5));
  i.forward(find_rung("reference"));
  EXPECT_NEAR(i.loss.values()[0], std::log(7.0), 1e-15);
  EXPECT_NEAR(i.lse.values()[1], 2.5 + std::log(7.0), 1e-15);
}

TEST(CrossEntropy, GradientIsTheSlopeOfTheLoss) {
  Instance i({.rows = 4, .classes = 9, .dtype = DType::f64});
  const Rung& rung = find_rung("reference");
  i.both(rung);
  const std::vector<double> gradient = i.dlogits.values();
  for (std::size_t at = 0; at < gradient.size(); ++at) {
    const double slope = i.factor * ops::difference(i.logits, at, 1e-5, [&] {
                           i.forward(rung);
                           return i.loss.values()[0];
                         });
    EXPECT_NEAR(gradient[at], slope, 1e-9) << at;
  }
}

TEST(CrossEntropy, EveryRungStaysWithinItsBound) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    for (const DType dtype : rung.dtypes) {
      for (const std::int64_t rows : {1, 2, 33}) {
        for (const std::int64_t classes : {1, 2, 15, 16, 17, 100, 1000}) {
          for (const double spread : {1.0, 30.0}) {
            Instance i({rows, classes, dtype}, 3, 5, spread);
            i.forward(rung);
            i.backward(rung);
            EXPECT_LE(i.worst(false), 1.0) << rung.name << " " << to_string(i.problem);
            i.both(rung);
            EXPECT_LE(i.worst(true), 1.0) << rung.name << " " << to_string(i.problem);
            EXPECT_TRUE(i.logits.gaps_are_untouched() && i.dlogits.gaps_are_untouched());
          }
        }
      }
    }
  }
}

TEST(CrossEntropy, TheGradientMayLieWhereTheLogitsDo) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    Instance apart({.rows = 5, .classes = 40, .dtype = rung.dtypes.front()}), same(apart.problem);
    apart.both(rung);
    auto args = same.both_args();
    args.dlogits = same.logits.view();
    rung.forward_backward(same.problem, args, {}, {});
    EXPECT_EQ(same.logits.values(), apart.dlogits.values()) << rung.name;
  }
}

TEST(CrossEntropy, LargeLogitsNeitherOverflowNorVanish) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    Instance i({.rows = 2, .classes = 3, .dtype = rung.dtypes.front()});
    i.logits.set_all({1e4, 1e4, -1e4, -1e4, -1e4, -1e4});
    i.targets = {0, 2};
    i.both(rung);
    EXPECT_NEAR(i.row_loss.values()[0], std::log(2.0), 1e-6);
    EXPECT_NEAR(i.row_loss.values()[1], std::log(3.0), 1e-6);
    EXPECT_LE(i.worst(true), 1.0) << rung.name;
  }
}

TEST(CrossEntropy, AClassOfProbabilityNoughtIsNoNaN) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    Instance i({.rows = 1, .classes = 2, .dtype = rung.dtypes.front()});
    i.logits.set_all({0.0, -INFINITY});
    i.targets = {0};
    i.both(rung);
    EXPECT_EQ(i.loss.values()[0], 0.0) << rung.name;
    EXPECT_EQ(i.dlogits.values()[1], 0.0) << rung.name;
  }
}

TEST(CrossEntropy, ATargetOutOfRangeIsNaNInItsRowAlone) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    for (const std::int64_t target : {std::int64_t{-1}, std::int64_t{8}, INT64_MIN, INT64_MAX}) {
      Instance i({.rows = 3, .classes = 8, .dtype = rung.dtypes.front()});
      i.targets[1] = target;
      i.both(rung);
      EXPECT_TRUE(std::isnan(i.loss.values()[0]));
      EXPECT_FALSE(std::isnan(i.row_loss.values()[0]));
      EXPECT_TRUE(std::isnan(i.row_loss.values()[1]));
      const std::vector<double> gradient = i.dlogits.values();
      for (std::size_t at = 0; at < gradient.size(); ++at)
        EXPECT_EQ(std::isnan(gradient[at]), at / 8 == 1) << rung.name;
      i.backward(rung);
      EXPECT_TRUE(std::isnan(i.dlogits.values()[8]) && !std::isnan(i.dlogits.values()[0])) << rung.name;
    }
  }
}

// Of any payload: its low bits must not become an exponent.
TEST(CrossEntropy, TheExponentialOfANaNIsOne) {
  for (const std::uint32_t bits : {0x7fc00000U, 0x7fc00001U, 0x7fd3594cU, 0x7fffffffU, 0xffc00003U}) {
    EXPECT_TRUE(std::isnan(ops::exp_of_negative(std::bit_cast<float>(bits)))) << bits;
  }
}

TEST(CrossEntropy, ANaNAmongTheLogitsReachesTheLoss) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    for (const std::int64_t at : {0, 17, 39}) {
      Instance i({.rows = 1, .classes = 40, .dtype = rung.dtypes.front()});
      i.logits.set(at, NAN);
      i.forward(rung);
      EXPECT_TRUE(std::isnan(i.loss.values()[0])) << rung.name << " at " << at;
    }
  }
}

TEST(CrossEntropy, WithoutAScaleTheScaleIsOne) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    Instance i({.rows = 2, .classes = 5, .dtype = rung.dtypes.front()});
    i.set_factor(1);
    i.both(rung);
    const std::vector<double> with = i.dlogits.values();
    auto args = i.both_args();
    args.scale = {};
    rung.forward_backward(i.problem, args, {}, {});
    EXPECT_EQ(i.dlogits.values(), with);
  }
}

TEST(CrossEntropy, WhatDoesNotFitIsRefusedByName) {
  Instance i({.rows = 2, .classes = 5});
  auto args = i.both_args();
  args.targets = nullptr;
  EXPECT_EQ(usage_error([&] { validate(i.problem, args); }), "targets has no memory");
  args = i.both_args();
  args.lse.shape = Shape{3};
  EXPECT_EQ(usage_error([&] { validate(i.problem, args); }), "lse has shape (3), must have (2)");
  args = i.both_args();
  args.dlogits = args.logits.data == nullptr ? args.dlogits : i.logits.view();
  args.dlogits.strides[0] = 100;
  EXPECT_EQ(usage_error([&] { validate(i.problem, args); }),
            "dlogits lies where the logits do with rows 100 apart, must be 5 as theirs");
  EXPECT_EQ(usage_error([] { validate(Problem{.rows = 0}); }),
            "a cross-entropy needs rows ≥ 1 and classes ≥ 1, found rows=0 classes=1 dtype=fp32");
}

}  // namespace
}  // namespace syslab::cross_entropy
