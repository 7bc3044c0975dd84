#include <cmath>

#include "ops/global_norm/oracle.hpp"
#include "tests/ops/host_rungs.hpp"
#include "tests/ops/model_tensors.hpp"

namespace syslab::global_norm {
namespace {

using ops::usage_error;
using ops::worst_ratio;

struct Found {
  double norm, factor;
  std::int64_t non_finite;
};

Found norm_of(const Rung& rung, const ops::Tensor& g, double max_norm, double grad_scale = 1) {
  const Problem problem{g.shape[0], g.dtype};
  ops::Tensor norm(problem.statistics(), {1}), factor = norm, scale = norm;
  scale.set(0, grad_scale);
  std::int64_t non_finite = -1;
  const NormArgs args{g.view(), norm.view(), factor.view(), &non_finite, scale.view(), max_norm};
  validate(problem, args);
  std::vector<std::byte> memory(rung.workspace_bytes(problem));
  rung.norm(problem, args, {memory.data(), memory.size()}, {});
  return {norm.values()[0], factor.values()[0], non_finite};
}

ops::Tensor random_gradient(std::int64_t elements, DType dtype) {
  std::mt19937 random(4);
  ops::Tensor g(dtype, {elements});
  return g.fill_normal(random, 2);
}

TEST(GlobalNorm, EveryRungStaysWithinItsBound) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    for (const DType dtype : rung.dtypes) {
      for (const std::int64_t elements : {1, 2, 9, 1000, 65'535, 65'536, 65'537, 200'000}) {
        const ops::Tensor g = random_gradient(elements, dtype);
        const Found found = norm_of(rung, g, 1.5, 0.125);
        const Oracle exact = oracle({elements, dtype}, g.view(), 1.5, 0.125);
        EXPECT_LE(worst_ratio({found.norm}, exact.norm.value, exact.norm.tolerance), 1.0) << rung.name << elements;
        EXPECT_LE(worst_ratio({found.factor}, exact.factor.value, exact.factor.tolerance), 1.0) << rung.name;
        EXPECT_EQ(found.non_finite, 0);
      }
    }
  }
}

TEST(GlobalNorm, OfIntegersIsExact) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    ops::Tensor g(rung.dtypes.front(), {160'000});
    for (std::int64_t i = 0; i < 160'000; ++i) g.set(i, i % 2 == 0 ? 3 : -3);
    EXPECT_EQ(norm_of(rung, g, 1).norm, 1200.0) << rung.name;
  }
}

TEST(GlobalNorm, ANormBelowTheLimitClipsNothing) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    ops::Tensor g(rung.dtypes.front(), {2});
    g.set_all({3, 4});
    EXPECT_EQ(norm_of(rung, g, 5.1).factor, 1.0);
    EXPECT_EQ(norm_of(rung, g, INFINITY).factor, 1.0);
    EXPECT_NEAR(norm_of(rung, g, 2.5).factor, 0.5, 1e-6);
  }
}

TEST(GlobalNorm, WhatIsNotFiniteIsCountedAndShows) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    ops::Tensor g = random_gradient(3000, rung.dtypes.front());
    g.set(1234, -INFINITY);
    const Found infinite = norm_of(rung, g, 1);
    EXPECT_EQ(infinite.non_finite, 1);
    EXPECT_EQ(infinite.norm, INFINITY);
    EXPECT_EQ(infinite.factor, 0.0);
    g.set(2999, NAN);
    const Found nan = norm_of(rung, g, 1);
    EXPECT_EQ(nan.non_finite, 2);
    EXPECT_TRUE(std::isnan(nan.norm) && std::isnan(nan.factor)) << rung.name;
    EXPECT_TRUE(std::isnan(norm_of(rung, g, INFINITY).factor)) << rung.name;
  }
}

TEST(GlobalNorm, WhatIsNotFiniteIsAddedToACountWhereAsked) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    const DType dtype = rung.dtypes.front();
    ops::Tensor g(dtype, {3}), norm(Problem{1, dtype}.statistics(), {1}), factor = norm;
    g.set_all({1, INFINITY, NAN});
    std::vector<std::byte> memory(rung.workspace_bytes({3, dtype}));
    std::int64_t count = 40;
    NormArgs args{
        .g = g.view(), .norm = norm.view(), .factor = factor.view(), .non_finite = &count, .add_to_count = true};
    rung.norm({3, dtype}, args, {memory.data(), memory.size()}, {});
    EXPECT_EQ(count, 42) << rung.name;
    args.add_to_count = false;
    rung.norm({3, dtype}, args, {memory.data(), memory.size()}, {});
    EXPECT_EQ(count, 2) << rung.name;
  }
}

TEST(GlobalNorm, ScalingMultipliesEveryElementOnce) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    for (const DType dtype : rung.dtypes) {
      ops::Tensor g = random_gradient(70'000, dtype), factor(Problem{1, dtype}.statistics(), {1});
      factor.set(0, 0.3);
      const Expected exact = scale_oracle({70'000, dtype}, g.view(), factor.values()[0]);
      const ScaleArgs args{g.view(), factor.view()};
      validate({70'000, dtype}, args);
      rung.scale({70'000, dtype}, args, {});
      EXPECT_LE(worst_ratio(g.values(), exact.value, exact.tolerance), 1.0) << rung.name << to_string(dtype);
    }
  }
}

TEST(GlobalNorm, WhatCannotBeIsRefused) {
  ops::Tensor g(DType::f32, {3}), one(DType::f32, {1});
  const NormArgs args{g.view(), one.view(), one.view(), nullptr, {}, 0.0};
  EXPECT_EQ(usage_error([&] { validate({3}, args); }), "max_norm is 0, must be above 0 (infinity: no clipping)");
  EXPECT_EQ(usage_error([&] { validate({4}, args); }), "g has shape (3), must have (4)");
}

}  // namespace
}  // namespace syslab::global_norm
