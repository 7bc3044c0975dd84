#include <cmath>

#include "tests/ops/host_rungs.hpp"
#include "tests/ops/rms_norm_fixture.hpp"

namespace syslab::rms_norm {
namespace {

const std::vector<DType> kHostDtypes = {DType::f32, DType::f16, DType::bf16};

TEST(RmsNorm, ReferenceGivesTheFormulasByHand) {
  Problem p = problem_of(DType::f64, 1, 2, true);
  p.eps = 0.5;
  Instance i(p);
  i.x.set_all({1, 2});
  i.delta.set_all({2, 2});  // h = (3, 4), mean of squares 12.5, rstd = 1/√13
  i.w.set_all({1, 2});
  i.dy.set_all({13, 0});  // g = (13, 0), c = ½·13·3/√13
  i.dh.set_all({10, 20});
  i.run(find_rung("reference"));
  const double r = 1 / std::sqrt(13.0), c = 13 * 3 * r / 2;
  EXPECT_EQ(i.h.values(), (std::vector<double>{3, 4}));
  EXPECT_DOUBLE_EQ(i.rstd.values()[0], r);
  EXPECT_DOUBLE_EQ(i.y.values()[0], 3 * r);
  EXPECT_DOUBLE_EQ(i.y.values()[1], 8 * r);
  EXPECT_DOUBLE_EQ(i.dx.values()[0], 10 + r * (13 - 3 * r * c));
  EXPECT_DOUBLE_EQ(i.dx.values()[1], 20 + r * (0 - 4 * r * c));
  EXPECT_DOUBLE_EQ(i.dw.values()[0], 13 * 3 * r);
  EXPECT_DOUBLE_EQ(i.dw.values()[1], 0);
}

TEST(RmsNorm, GradientsAgreeWithFiniteDifferencesInDouble) {
  for (const bool add : {false, true}) {
    Instance i(problem_of(DType::f64, 3, 7, add), 5);
    i.with_dh = add;
    const Rung& reference = find_rung("reference");
    i.run(reference);
    const std::vector<double> dx = i.dx.values(), dw = i.dw.values(), dy = i.dy.values(), dh = i.dh.values();
    // Σ dy·y, and what flows past the norm: Σ dh·h.
    const auto loss = [&] {
      reference.forward(i.problem, i.forward_args(), {}, {});
      const std::vector<double> y = i.y.values(), h = i.kept().values();
      double sum = 0;
      for (std::size_t n = 0; n < y.size(); ++n) sum += dy[n] * y[n] + (i.with_dh ? dh[n] * h[n] : 0);
      return sum;
    };
    for (std::size_t n = 0; n < dx.size(); ++n) {
      EXPECT_NEAR(difference(i.x, n, 1e-5, loss), dx[n], 1e-7) << "x " << n;
      if (add) {
        EXPECT_NEAR(difference(i.delta, n, 1e-5, loss), dx[n], 1e-7) << "delta " << n;
      }
    }
    for (std::size_t n = 0; n < dw.size(); ++n) EXPECT_NEAR(difference(i.w, n, 1e-5, loss), dw[n], 1e-7) << "w " << n;
  }
}

TEST(RmsNorm, EveryRungStaysWithinItsBoundsAtEveryEdge) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    for (const DType dtype : kHostDtypes) {
      for (const std::int64_t rows : {1, 2, 17, 70}) {
        for (const std::int64_t dim : {1, 2, 15, 16, 17, 64, 511, 512, 513, 1100}) {
          for (const bool add : {false, true}) {
            const Problem problem = problem_of(dtype, rows, dim, add);
            if (rung.supports(problem, Pass::forward)) continue;
            Instance i(problem, static_cast<unsigned>(rows * 1000 + dim), add ? 3 : 0);
            i.with_dh = rows != 2;
            i.run(rung);
            ASSERT_LE(worst_ratio(i), 1.0) << rung.name << " " << to_string(problem);
            EXPECT_TRUE(i.h.gaps_are_untouched() && i.y.gaps_are_untouched() && i.dx.gaps_are_untouched());
          }
        }
      }
    }
  }
}

TEST(RmsNorm, AResidualStreamInFp32TakesAndGivesHalfPrecision) {
  for (const DType half : {DType::bf16, DType::f16}) {
    Problem problem = problem_of(DType::f32, 33, 257, true);
    problem.y_dtype = half;
    Instance i(problem, 9);
    i.run(find_rung("naive"));
    EXPECT_LE(worst_ratio(i), 1.0) << to_string(half);
  }
}

TEST(RmsNorm, TheBoundNoticesOneMissingSquare) {
  for (const DType dtype : kHostDtypes) {
    Instance i(problem_of(dtype, 20, 48), 2), forgetful(problem_of(dtype, 20, 48), 2);
    i.run(find_rung("naive"));
    for (std::int64_t row = 0; row < 20; ++row) forgetful.x.set(row * 48 + 47, 0);  // the sum without its last term
    forgetful.run(find_rung("naive"));
    i.rstd = forgetful.rstd;
    EXPECT_GT(worst_ratio(i), 1.0) << to_string(dtype);
  }
}

TEST(RmsNorm, InPlaceChangesNoBit) {
  for (const DType dtype : kHostDtypes) {
    const Problem problem = problem_of(dtype, 37, 530, true);
    Instance apart(problem, 4), within(problem, 4);
    apart.run(find_rung("naive"));
    ForwardArgs forward = within.forward_args();
    forward.h = within.x.view();
    find_rung("naive").forward(problem, forward, {}, {});
    BackwardArgs backward = within.backward_args();
    backward.h = within.x.view();
    backward.dx = within.dh.view();
    find_rung("naive").backward(problem, backward, {}, {});
    EXPECT_EQ(within.x.bytes, apart.h.bytes);
    EXPECT_EQ(within.y.bytes, apart.y.bytes);
    EXPECT_EQ(within.dh.bytes, apart.dx.bytes);
    EXPECT_EQ(within.dw.bytes, apart.dw.bytes);
  }
}

TEST(RmsNorm, AccumulatesOntoTheGradientOfItsWeightsWhenAsked) {
  for (const char* name : {"reference", "naive"}) {
    const Rung& rung = find_rung(name);
    Instance i(problem_of(rung.dtypes[0], 300, 70), 6);
    i.run(rung);
    const Tensor before = i.dw;
    BackwardArgs args = i.backward_args();
    args.accumulate = true;
    rung.backward(i.problem, args, {}, {});
    const Expected expected = backward_oracle(i.problem, args.dy, args.h, args.w, args.rstd, args.dh, before.view()).dw;
    EXPECT_LE(ops::worst_ratio(i.dw.values(), expected.value, expected.tolerance), 1.0) << name;
    EXPECT_GT(ops::worst_ratio(before.values(), expected.value, expected.tolerance), 1.0) << name;
  }
}

TEST(RmsNorm, AGivenWorkspaceChangesNoBitAndIsEnough) {
  const Problem problem = problem_of(DType::f32, 1000, 90);
  const Rung& rung = find_rung("naive");
  const std::size_t bytes = rung.workspace_bytes(problem, Pass::backward);
  ASSERT_GT(bytes, 0U);
  std::vector<float> memory(bytes / sizeof(float) + 1, 77.0F);
  Instance own(problem), given(problem);
  own.run(rung);
  given.run(rung, {memory.data(), bytes});
  EXPECT_EQ(own.dw.bytes, given.dw.bytes);
  EXPECT_EQ(memory.back(), 77.0F) << "written beyond the workspace it asked for";
}

TEST(RmsNorm, CountsItsBytes) {
  Problem p = problem_of(DType::bf16, 100, 10, true);
  EXPECT_EQ(forward_bytes(p), 100 * 10 * 2 * 4 + 10 * 4 + 100 * 4);             // x, delta, h, y; w; rstd
  EXPECT_EQ(backward_bytes(p, true), 100 * 10 * 2 * 4 + 2 * 10 * 4 + 100 * 4);  // dy, h, dh, dx; w, dw; rstd
  p.add = false;
  EXPECT_EQ(forward_bytes(p), 100 * 10 * 2 * 2 + 10 * 4 + 100 * 4);
}

TEST(RmsNorm, ImpossibleArgumentsAreNamed) {
  using ops::usage_error;
  EXPECT_NE(usage_error([] { validate(problem_of(DType::f32, 0, 4)); }).find("rows=0"), std::string::npos);
  EXPECT_NE(usage_error([] { validate(Problem{.x_dtype = DType::f64}); }).find("w=fp32"), std::string::npos);
  EXPECT_NE(usage_error([] { validate(Problem{.eps = NAN}); }).find("eps"), std::string::npos);
  Instance i(problem_of(DType::f32, 4, 6, true));
  ForwardArgs args = i.forward_args();
  args.w.shape = Shape{5};
  EXPECT_EQ(usage_error([&] { validate(i.problem, args); }), "w has shape (5), must have (6)");
  args = i.forward_args();
  args.delta = {};
  EXPECT_NE(usage_error([&] { validate(i.problem, args); }).find("delta"), std::string::npos);
  args = i.forward_args();
  i.problem.add = false;
  EXPECT_NE(usage_error([&] { validate(i.problem, args); }).find("without add"), std::string::npos);
  BackwardArgs gradients = i.backward_args();
  gradients.dx.strides = {1, 4};
  EXPECT_NE(usage_error([&] { validate(i.problem, gradients); }).find("dx has last stride 4"), std::string::npos);
  gradients = i.backward_args();
  gradients.dh.dtype = DType::bf16;
  EXPECT_EQ(usage_error([&] { validate(i.problem, gradients); }), "dh is bf16, must be fp32");
  EXPECT_NE(usage_error([] { find_rung("nave"); }).find("naive"), std::string::npos);
}

// Asked of the rung as it stands on the ladder, with or without a GPU.
TEST(RmsNorm, OnAGpuRefusesMoreThanAGridCounts) {
  const Rung& fused = find_rung("fused_cuda");
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    EXPECT_EQ(fused.supports({.rows = (std::int64_t{1} << 31) - 1, .dim = 1}, pass), std::nullopt);
    EXPECT_TRUE(fused.supports({.rows = std::int64_t{1} << 31, .dim = 1}, pass));
    EXPECT_TRUE(fused.supports({.rows = 1, .dim = std::int64_t{1} << 31}, pass));
  }
  EXPECT_FALSE(fused.takes_any_delta);
  EXPECT_TRUE(find_rung("naive").takes_any_delta);
}

}  // namespace
}  // namespace syslab::rms_norm
