#include <cmath>

#include "tests/ops/host_rungs.hpp"
#include "tests/ops/rope_fixture.hpp"

namespace syslab::rope {
namespace {

const std::vector<DType> kHostDtypes = {DType::f32, DType::f16, DType::bf16};
const std::vector<Layout> kLayouts = {Layout::interleaved, Layout::halves};

Problem problem_of(DType dtype, Layout layout, std::int64_t batch, std::int64_t heads, std::int64_t seq,
                   std::int64_t head_dim) {
  return {batch, heads, seq, head_dim, layout, dtype, dtype};
}

TEST(Rope, TablesHoldTheAnglesOfTheFormula) {
  Tensor cos(DType::f64, {5, 3}), sin(DType::f64, {5, 3});
  fill_tables(5, 6, 100, cos.view(), sin.view());
  for (std::size_t position = 0; position < 5; ++position) {
    for (std::size_t k = 0; k < 3; ++k) {
      const double angle = static_cast<double>(position) / std::pow(100.0, static_cast<double>(2 * k) / 6);
      EXPECT_NEAR(cos.values()[position * 3 + k], std::cos(angle), 1e-15);
      EXPECT_NEAR(sin.values()[position * 3 + k], std::sin(angle), 1e-15);
    }
  }
  Tensor narrow(DType::f32, {5, 3}), other(DType::f32, {5, 3});
  fill_tables(5, 6, 100, narrow.view(), other.view());
  for (std::size_t i = 0; i < 15; ++i) EXPECT_EQ(narrow.values()[i], static_cast<float>(cos.values()[i]));
}

TEST(Rope, ReferenceTurnsAQuarterByHandInBothLayouts) {
  for (const Layout layout : kLayouts) {
    Instance i(problem_of(DType::f64, layout, 1, 1, 2, 4));
    i.cos.set_all({1, 1, 0, 1});
    i.sin.set_all({0, 0, 1, 0});  // at position 1 the first pair turns a quarter, the second stays
    i.x.set_all({1, 2, 3, 4, 1, 2, 3, 4});
    i.run(find_rung("reference"));
    EXPECT_EQ(i.y.values(), layout == Layout::interleaved ? (std::vector<double>{1, 2, 3, 4, -2, 1, 3, 4})
                                                          : (std::vector<double>{1, 3, 2, 4, -2, 3, 1, 4}));
  }
}

TEST(Rope, GradientsAgreeWithFiniteDifferencesInDouble) {
  for (const Layout layout : kLayouts) {
    Instance i(problem_of(DType::f64, layout, 2, 1, 3, 4), 3);
    const Rung& reference = find_rung("reference");
    i.run(reference);
    const std::vector<double> dy = i.dy.values(), dx = i.dx.values();
    const auto loss = [&] {
      reference.forward(i.problem, i.forward_args(), {}, {});
      const std::vector<double> y = i.y.values();
      double sum = 0;
      for (std::size_t n = 0; n < y.size(); ++n) sum += dy[n] * y[n];
      return sum;
    };
    for (std::size_t n = 0; n < dx.size(); ++n) EXPECT_NEAR(difference(i.x, n, 0.5, loss), dx[n], 1e-12);
  }
}

TEST(Rope, EveryRungStaysWithinItsBoundsWhateverTheStrides) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    for (const DType dtype : kHostDtypes) {
      for (const Layout layout : kLayouts) {
        for (const std::int64_t head_dim : {2, 4, 6, 16, 62, 64, 96, 128, 256, 1024}) {
          const Problem p = problem_of(dtype, layout, 2, 4, 9, head_dim);
          if (rung.supports(p, Pass::forward)) continue;
          Instance i(p, fused_strides(p), static_cast<unsigned>(head_dim));
          i.run(rung);
          ASSERT_LE(worst_ratio(i), 1.0) << rung.name << " " << to_string(p);
          EXPECT_TRUE(i.y.gaps_are_untouched() && i.dx.gaps_are_untouched()) << to_string(p);
        }
      }
    }
  }
}

TEST(Rope, GivesFp32OfHalfPrecisionAsAutocastDoes) {
  for (const DType half : {DType::bf16, DType::f16}) {
    Problem p = problem_of(half, Layout::halves, 2, 3, 11, 32);
    p.y_dtype = DType::f32;
    Instance i(p);
    i.run(find_rung("naive"));
    EXPECT_LE(worst_ratio(i), 1.0) << to_string(half);
  }
}

TEST(Rope, TheBoundNoticesTheNextPositionsAngle) {
  for (const DType dtype : kHostDtypes) {
    const Problem p = problem_of(dtype, Layout::interleaved, 1, 2, 16, 32);
    Instance i(p);
    Args args = i.forward_args();
    i.run(find_rung("naive"));
    EXPECT_LE(worst_ratio(i), 1.0);
    args.cos.data = i.cos.bytes.data() + 16 * sizeof(float);
    args.sin.data = i.sin.bytes.data() + 16 * sizeof(float);
    args.cos.shape = args.sin.shape = Shape{17, 16};
    find_rung("naive").forward(p, args, {}, {});
    EXPECT_GT(worst_ratio(i), 1.0) << to_string(dtype);
  }
}

TEST(Rope, InPlaceChangesNoBit) {
  for (const char* name : {"reference", "naive"}) {
    const Rung& rung = find_rung(name);
    for (const DType dtype : rung.dtypes) {
      for (const Layout layout : kLayouts) {
        Instance apart(problem_of(dtype, layout, 2, 4, 300, 64)), within(apart);
        apart.run(rung);
        Args forward = within.forward_args(), backward = within.backward_args();
        forward.y = within.x.view();
        backward.y = within.dy.view();
        rung.forward(within.problem, forward, {}, {});
        rung.backward(within.problem, backward, {}, {});
        EXPECT_EQ(within.x.bytes, apart.y.bytes);
        EXPECT_EQ(within.dy.bytes, apart.dx.bytes);
      }
    }
  }
}

TEST(Rope, BothLayoutsGiveTheSameScores) {
  std::vector<std::vector<double>> scores;
  for (const Layout layout : kLayouts) {
    Instance i(problem_of(DType::f64, layout, 1, 2, 5, 8));  // head 0 asks, head 1 is asked
    i.run(find_rung("reference"));
    const std::vector<double> y = i.y.values();
    std::vector<double>& found = scores.emplace_back();
    for (std::size_t q = 0; q < 5; ++q) {
      for (std::size_t k = 0; k < 5; ++k) {
        double sum = 0;
        for (std::size_t d = 0; d < 8; ++d) sum += y[q * 8 + d] * y[40 + k * 8 + d];
        found.push_back(sum);
      }
    }
  }
  for (std::size_t n = 0; n < 25; ++n) EXPECT_NEAR(scores[0][n], scores[1][n], 1e-13);
}

TEST(Rope, CountsItsBytes) {
  EXPECT_EQ(bytes(problem_of(DType::bf16, Layout::halves, 4, 24, 512, 64)), 4.0 * 24 * 512 * 64 * 4 + 512 * 64 * 4);
}

TEST(Rope, ImpossibleArgumentsAreNamed) {
  using ops::usage_error;
  EXPECT_NE(usage_error([] { validate(Problem{.head_dim = 7}); }).find("even"), std::string::npos);
  EXPECT_NE(usage_error([] { validate(Problem{.x_dtype = DType::f32, .y_dtype = DType::bf16}); }).find("y=bf16"),
            std::string::npos);
  Instance i(problem_of(DType::f32, Layout::halves, 1, 2, 5, 8));
  Args args = i.forward_args();
  args.cos.shape = Shape{4, 4};
  EXPECT_EQ(usage_error([&] { validate(i.problem, args, Pass::forward); }), "cos has shape (4, 4), must have (5, 4)");
  args = i.forward_args();
  args.x.dtype = DType::bf16;
  EXPECT_EQ(usage_error([&] { validate(i.problem, args, Pass::forward); }), "x is bf16, must be fp32");
  EXPECT_NE(usage_error([&] { fill_tables(7, 8, 0, i.cos.view(), i.sin.view()); }).find("theta"), std::string::npos);
  EXPECT_NE(usage_error([&] { fill_tables(3, 8, 10, i.cos.view(), i.sin.view()); }).find("7 rows"), std::string::npos);
  EXPECT_TRUE(find_rung("naive").supports(problem_of(DType::f32, Layout::halves, 1, 1, 1, 1026), Pass::forward));
}

}  // namespace
}  // namespace syslab::rope
