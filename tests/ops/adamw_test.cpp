#include "tests/ops/adamw_fixture.hpp"
#include "tests/ops/host_rungs.hpp"

namespace syslab::adamw {
namespace {

using ops::usage_error;

// The formulas as the hand-outs and the frameworks write them, not as the kernels fold them.
struct PlainState {
  double p, m = 0, v = 0;
};
void plain_step(PlainState& s, double g, const Options& o, int t) {
  s.m = o.beta1 * s.m + (1 - o.beta1) * g;
  s.v = o.beta2 * s.v + (1 - o.beta2) * g * g;
  const double first = 1 - std::pow(o.beta1, t), second = 1 - std::pow(o.beta2, t);
  if (o.decay_order == DecayOrder::before) s.p *= 1 - o.lr * o.weight_decay;
  if (o.eps_mode == EpsMode::uncorrected) {
    s.p -= o.lr * std::sqrt(second) / first * s.m / (std::sqrt(s.v) + o.eps);
  } else {
    s.p -= o.lr * (s.m / first) / (std::sqrt(s.v / second) + o.eps);
  }
  if (o.decay_order == DecayOrder::after) s.p -= o.lr * o.weight_decay * s.p;
}

TEST(AdamW, ReferenceFollowsTheFormulasInBothOrdersAndEpsModes) {
  for (Options options : variants()) {
    options.eps = 0.01;  // large enough that its place shows
    Instance i({.elements = 1, .dtype = DType::f64}, options);
    PlainState plain{1.5};
    i.p.set(0, plain.p);
    i.m.set(0, 0);
    i.v.set(0, 0);
    i.clip = 0.5F;
    for (int t = 1; t <= 5; ++t) {
      i.g.set(0, 0.3 * t);
      i.scalars = scalars_of(options, t, 2.0);
      i.step(find_rung("reference"));
      plain_step(plain, 0.3 * t, options, t);
      EXPECT_NEAR(i.p.values()[0], plain.p, 1e-14) << t;
      EXPECT_NEAR(i.m.values()[0], plain.m, 1e-14) << t;
      EXPECT_NEAR(i.v.values()[0], plain.v, 1e-14) << t;
    }
  }
}

TEST(AdamW, TheFourVariantsDiffer) {
  std::vector<double> ends;
  for (Options options : variants()) {
    options.eps = 0.01;
    Instance i({.elements = 1, .dtype = DType::f64}, options);
    i.step(find_rung("reference"));
    ends.push_back(i.p.values()[0]);
  }
  for (std::size_t a = 0; a < ends.size(); ++a) {
    for (std::size_t b = a + 1; b < ends.size(); ++b) EXPECT_GT(std::abs(ends[a] - ends[b]), 1e-8) << a << " " << b;
  }
}

TEST(AdamW, EveryRungStaysWithinItsBoundStepAfterStep) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    for (const Options& options : variants()) {
      for (const std::int64_t elements : {1, 2, 7, 1000, 20'000}) {
        for (const auto copy : {std::optional<DType>{}, std::optional{DType::bf16}, std::optional{DType::f16}}) {
          if (elements > 1000 && copy != DType::bf16) continue;
          Instance i({elements, rung.dtypes.front(), copy}, options);
          for (int t = 3; t < 6; ++t) {
            i.scalars = scalars_of(options, t, 0.25);
            i.fill_gradient(static_cast<unsigned>(t));
            EXPECT_LE(i.step(rung), 1.0) << rung.name << " " << to_string(i.problem) << " step " << t;
          }
        }
      }
    }
  }
}

TEST(AdamW, ASkippedStepTouchesNothing) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    for (const bool by_flag : {true, false}) {
      Instance i({.elements = 100, .dtype = rung.dtypes.front(), .copy_dtype = DType::bf16});
      i.g.set(3, NAN);
      i.scalars.skip = by_flag ? 1 : 0;
      i.non_finite = by_flag ? 0 : 1;
      const auto before = std::vector{i.p.bytes, i.m.bytes, i.v.bytes, i.copy.bytes};
      rung.step(i.problem, i.args(), {});
      EXPECT_EQ((std::vector{i.p.bytes, i.m.bytes, i.v.bytes, i.copy.bytes}), before) << rung.name;
    }
  }
}

TEST(AdamW, WithoutAClipFactorTheGradientIsTakenAsItIs) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    Instance with({.elements = 10, .dtype = rung.dtypes.front()}), without(with.problem);
    with.clip = 1;
    rung.step(with.problem, with.args(), {});
    Args args = without.args();
    args.clip = nullptr;
    args.non_finite = nullptr;
    rung.step(without.problem, args, {});
    EXPECT_EQ(with.p.bytes, without.p.bytes) << rung.name;
  }
}

TEST(AdamW, AStepMayWriteElsewhereThanItReads) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    Instance in_place({.elements = 10'000, .dtype = rung.dtypes.front(), .copy_dtype = DType::f16}), old = in_place,
                                                                                                     apart = in_place;
    rung.step(in_place.problem, in_place.args(), {});
    for (ops::Tensor* output : {&apart.p, &apart.m, &apart.v}) {
      std::fill(output->bytes.begin(), output->bytes.end(), std::byte{0xff});
    }
    Args args = apart.args();
    args.old_p = old.p.view();
    args.old_m = old.m.view();
    args.old_v = old.v.view();
    validate(apart.problem, args);
    rung.step(apart.problem, args, {});
    EXPECT_EQ((std::vector{apart.p.bytes, apart.m.bytes, apart.v.bytes, apart.copy.bytes}),
              (std::vector{in_place.p.bytes, in_place.m.bytes, in_place.v.bytes, in_place.copy.bytes}))
        << rung.name;
    args.old_m = {};
    EXPECT_EQ(usage_error([&] { validate(apart.problem, args); }),
              "AdamW takes old_p, old_m and old_v together, or none of them");
  }
}

TEST(AdamW, WeightsInHalvesHaveTheBitsOfWholeOnes) {
  const Rung& rung = find_rung("naive");
  for (const std::int64_t elements : {1, 7, 20'000}) {
    Instance whole({.elements = elements}), split = whole;
    split.problem.split = true;
    ops::Halves p(whole.p), elsewhere = p;
    for (int t = 3; t < 6; ++t) {
      for (Instance* one : {&whole, &split}) {
        one->scalars = scalars_of({.lr = 0.01}, t, 0.25);
        one->fill_gradient(static_cast<unsigned>(t));
      }
      Args args = split.args();
      args.p = p.high.view();
      args.low = p.low.view();
      validate(split.problem, args);
      if (t == 4) {  // reads one pair of planes and writes another
        Instance old = split;
        ops::Halves before = p;
        args.old_p = before.high.view();
        args.old_low = before.low.view();
        args.old_m = old.m.view();
        args.old_v = old.v.view();
        args.p = elsewhere.high.view();
        args.low = elsewhere.low.view();
        validate(split.problem, args);
        rung.step(split.problem, args, {});
        p = elsewhere;
      } else {
        rung.step(split.problem, args, {});
      }
      rung.step(whole.problem, whole.args(), {});
      EXPECT_EQ(p.joined() == whole.p.bytes, true) << elements << " step " << t;
      EXPECT_EQ(split.m.bytes == whole.m.bytes && split.v.bytes == whole.v.bytes, true) << elements << " step " << t;
    }
    split.scalars.skip = 1;
    const auto before = std::vector{p.high.bytes, p.low.bytes};
    Args args = split.args();
    args.p = p.high.view();
    args.low = p.low.view();
    rung.step(split.problem, args, {});
    EXPECT_EQ((std::vector{p.high.bytes, p.low.bytes}), before) << "a skipped step";
  }
}

TEST(AdamW, HalvesAreOfFp32WithoutAnotherCopyAndNotForEveryRung) {
  EXPECT_EQ(
      usage_error([] { validate(Problem{.copy_dtype = DType::bf16, .split = true}); }),
      "AdamW splits weights of fp32 whose upper halves are the copy, found elements=1 dtype=fp32 split copy=bf16");
  Instance i({.elements = 4, .split = true});
  EXPECT_EQ(usage_error([&] { validate(i.problem, i.args()); }), "p is fp32, must be bf16");
  EXPECT_TRUE(find_rung("eager_cuda").supports(i.problem).has_value());
  EXPECT_FALSE(find_rung("naive").supports(i.problem).has_value());
  EXPECT_EQ(bytes({.elements = 10, .split = true}), 280);
}

TEST(AdamW, TheFirstStepOfTinyBetasLosesNoBits) {
  // 1 − β₂ by subtraction would have 1e-4 of relative error here.
  const Scalars scalars = scalars_of({.lr = 1, .beta1 = 0, .beta2 = 1 - 0x1p-40, .eps_mode = EpsMode::corrected}, 1);
  EXPECT_NEAR(scalars.in_f64.root_factor, 0x1p20, 0x1p20 * 1e-12);
  EXPECT_EQ(scalars.in_f64.step, 1.0);
}

TEST(AdamW, WhatCannotBeIsRefused) {
  EXPECT_EQ(usage_error([] { scalars_of({}, 0); }), "AdamW's steps count from 1, found 0");
  EXPECT_EQ(usage_error([] { scalars_of({.beta1 = 1.0}, 1); }), "AdamW's beta1 is 1, must be at least 0 and below 1");
  EXPECT_EQ(usage_error([] { scalars_of({.lr = NAN}, 1); }), "AdamW's lr is nan, must be at least 0 and below inf");
  EXPECT_EQ(usage_error([] { validate(Problem{.copy_dtype = DType::f32}); }),
            "AdamW's copy of the weights is bf16 or fp16, not fp32");
  Instance i({.elements = 4});
  Args args = i.args();
  args.scalars = nullptr;
  EXPECT_EQ(usage_error([&] { validate(i.problem, args); }), "AdamW's scalars have no memory");
  args = i.args();
  args.v.shape = Shape{5};
  EXPECT_EQ(usage_error([&] { validate(i.problem, args); }), "v has shape (5), must have (4)");
}

}  // namespace
}  // namespace syslab::adamw
