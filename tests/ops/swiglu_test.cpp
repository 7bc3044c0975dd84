#include <cmath>

#include "ops/exp_of_negative.hpp"
#include "tests/ops/host_rungs.hpp"
#include "tests/ops/swiglu_fixture.hpp"

namespace syslab::swiglu {
namespace {

const std::vector<DType> kHostDtypes = {DType::f32, DType::f16, DType::bf16};

TEST(ExpOfNegative, IsWithinTwoUnitsEverywhereItIsNormal) {
  double worst = 0;
  for (float x = 0; x > -87.0F; x = std::nextafter(x * 1.00001F, -1000.0F)) {
    const double exact = std::exp(static_cast<double>(x)), found = ops::exp_of_negative(x);
    worst = std::max(worst, std::abs(found - exact) / exact);
  }
  EXPECT_LE(worst, 2 * 0x1p-23);
  EXPECT_EQ(ops::exp_of_negative(0.0F), 1.0F);
  EXPECT_EQ(ops::exp_of_negative(-88.0F), 0.0F);
  EXPECT_EQ(ops::exp_of_negative(-INFINITY), 0.0F);
  EXPECT_TRUE(std::isnan(ops::exp_of_negative(NAN)));
}

TEST(Swiglu, ReferenceGivesTheFormulasByHand) {
  Instance i({1, 2, DType::f64});
  i.both.set_all({0, std::log(3.0), 5, 8});  // σ = ½, ¾
  i.dout.set_all({2, 16});
  i.run(find_rung("reference"));
  const double t = std::log(3.0);
  EXPECT_DOUBLE_EQ(i.out.values()[0], 0);
  EXPECT_DOUBLE_EQ(i.out.values()[1], 6 * t);
  EXPECT_DOUBLE_EQ(i.dup.values()[0], 0);
  EXPECT_DOUBLE_EQ(i.dup.values()[1], 12 * t);
  EXPECT_DOUBLE_EQ(i.dgate.values()[0], 5);
  EXPECT_DOUBLE_EQ(i.dgate.values()[1], 96 * (1 + t / 4));
  EXPECT_EQ(i.again.values(), i.out.values());
}

TEST(Swiglu, GradientsAgreeWithFiniteDifferencesInDouble) {
  Instance i({3, 5, DType::f64}, 4);
  const Rung& reference = find_rung("reference");
  i.run(reference);
  const std::vector<double> dout = i.dout.values(), dgate = i.dgate.values(), dup = i.dup.values();
  const auto loss = [&] {
    reference.forward(i.problem, i.forward_args(), {}, {});
    const std::vector<double> out = i.out.values();
    double sum = 0;
    for (std::size_t n = 0; n < out.size(); ++n) sum += dout[n] * out[n];
    return sum;
  };
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t d = 0; d < 5; ++d) {
      EXPECT_NEAR(difference(i.both, row * 10 + d, 1e-5, loss), dgate[row * 5 + d], 1e-8);
      EXPECT_NEAR(difference(i.both, row * 10 + 5 + d, 1e-5, loss), dup[row * 5 + d], 1e-8);
    }
  }
}

TEST(Swiglu, EveryRungStaysWithinItsBoundsAtEveryEdgeAndFarFromZero) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    for (const DType dtype : kHostDtypes) {
      if (rung.supports({1, 1, dtype}, Pass::forward)) continue;
      for (const std::int64_t rows : {1, 3, 70}) {
        for (const std::int64_t dim : {1, 7, 16, 511, 512, 513, 1100}) {
          for (const double scale : {1.0, 40.0}) {
            Instance i({rows, dim, dtype}, static_cast<unsigned>(rows + dim), 5, scale);
            i.run(rung);
            ASSERT_LE(worst_ratio(i), 1.0) << rung.name << " " << to_string(i.problem) << " scale " << scale;
            EXPECT_TRUE(i.out.gaps_are_untouched() && i.dgate.gaps_are_untouched() && i.dup.gaps_are_untouched());
          }
        }
      }
    }
  }
}

TEST(Swiglu, TheBoundNoticesASigmoidOfTheWrongSign) {
  for (const DType dtype : kHostDtypes) {
    Instance i({4, 64, dtype}), wrong({4, 64, dtype});
    i.run(find_rung("naive"));
    for (std::int64_t n = 0; n < 4 * 128; ++n) wrong.both.set(n, -i.both.values()[static_cast<std::size_t>(n)]);
    wrong.run(find_rung("naive"));  // (−t)·σ(−t)·(−u)
    i.out = wrong.out;
    EXPECT_GT(worst_ratio(i), 1.0) << to_string(dtype);
  }
}

TEST(Swiglu, InPlaceChangesNoBit) {
  for (const char* name : {"reference", "naive"}) {
    const Rung& rung = find_rung(name);
    for (const DType dtype : rung.dtypes) {
      Instance apart({37, 600, dtype}), within({37, 600, dtype});
      apart.run(rung);
      BackwardArgs args = within.backward_args();
      args.dgate = within.half(0);
      args.dup = within.half(1);
      args.out = within.dout.view();
      rung.backward(within.problem, args, {}, {});
      EXPECT_EQ(to_doubles(within.half(0)), apart.dgate.values());
      EXPECT_EQ(to_doubles(within.half(1)), apart.dup.values());
      EXPECT_EQ(within.dout.bytes, apart.out.bytes);
    }
  }
}

TEST(Swiglu, CountsItsBytes) {
  EXPECT_EQ(forward_bytes({100, 10, DType::bf16}), 6000);
  EXPECT_EQ(backward_bytes({100, 10, DType::bf16}, false), 10000);
  EXPECT_EQ(backward_bytes({100, 10, DType::f32}, true), 24000);
}

TEST(Swiglu, ImpossibleArgumentsAreNamed) {
  using ops::usage_error;
  EXPECT_NE(usage_error([] { validate(Problem{3, 0}); }).find("dim=0"), std::string::npos);
  Instance i({4, 6, DType::f32});
  ForwardArgs args = i.forward_args();
  args.up.dtype = DType::bf16;
  EXPECT_EQ(usage_error([&] { validate(i.problem, args); }), "up is bf16, must be fp32");
  BackwardArgs gradients = i.backward_args();
  gradients.dup.data = nullptr;
  EXPECT_EQ(usage_error([&] { validate(i.problem, gradients); }), "dup has no memory");
  gradients = i.backward_args();
  gradients.out = {};
  EXPECT_EQ(usage_error([&] { validate(i.problem, gradients); }), "no error");
  EXPECT_NE(usage_error([] { find_rung("nave"); }).find("naive"), std::string::npos);
}

TEST(Swiglu, OnAGpuRefusesMoreVectorsThanItCounts) {
  const Rung& fused = find_rung("fused_cuda");
  constexpr std::int64_t kMany = std::int64_t{1} << 32;
  EXPECT_EQ(fused.supports({kMany / 2, 8, DType::bf16}, Pass::forward), std::nullopt);
  EXPECT_TRUE(fused.supports({kMany, 8, DType::bf16}, Pass::forward));
  EXPECT_TRUE(fused.supports({kMany / 2, 3, DType::bf16}, Pass::backward)) << "elements, where 16 bytes divide no row";
  EXPECT_TRUE(fused.supports({1, std::int64_t{1} << 40, DType::f32}, Pass::forward));
}

}  // namespace
}  // namespace syslab::swiglu
