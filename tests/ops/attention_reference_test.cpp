// The reference against the definition, against finite differences, and the oracle against the reference.
#include "ops/attention/oracle/reference.hpp"

#include <array>
#include <cmath>
#include <numeric>

#include "attention_fixture.hpp"
#include "core/rounding.hpp"
#include "ops/attention/error_bound.hpp"

namespace syslab::attention {
namespace {

Problem small(Mask mask, std::int64_t seq_q, std::int64_t seq_k) {
  return {.batch = 2,
          .heads_q = 4,
          .heads_kv = 2,
          .seq_q = seq_q,
          .seq_k = seq_k,
          .head_dim = 5,
          .scale = 0.7F,
          .mask = mask,
          .dtype = DType::f64};
}

// Σ out ∘ dout after a forward pass: the scalar whose gradient backward computes.
double objective(Tensors& tensors) {
  reference_forward(tensors.problem(), tensors.forward());
  const auto out = to_doubles(tensors.out().view()), dout = to_doubles(tensors.dout().view());
  double sum = 0;
  for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * dout[i];
  return sum;
}

TEST(AttentionReference, GradientsMatchFiniteDifferences) {
  for (const Mask mask : {Mask::none, Mask::top_left, Mask::bottom_right}) {
    for (const auto& [seq_q, seq_k] : {std::pair{4, 6}, {6, 4}}) {
      Tensors tensors(small(mask, seq_q, seq_k), 7);
      reference_forward(tensors.problem(), tensors.forward());
      reference_backward(tensors.problem(), tensors.backward());
      for (auto [input, gradient] :
           {std::pair{&tensors.q(), &tensors.dq()}, {&tensors.k(), &tensors.dk()}, {&tensors.v(), &tensors.dv()}}) {
        const auto analytic = to_doubles(gradient->view());
        auto* x = input->view().as<double>();
        for (std::size_t i = 0; i < analytic.size(); ++i) {
          // Central differences: error h²·f‴/6 + ulp/h, about 1e-10 at h = 1e-5.
          constexpr double kStep = 1e-5;
          const double old = x[i];
          x[i] = old + kStep;
          const double above = objective(tensors);
          x[i] = old - kStep;
          const double below = objective(tensors);
          x[i] = old;
          EXPECT_NEAR(analytic[i], (above - below) / (2 * kStep), 1e-8 * (1 + std::abs(analytic[i])))
              << gradient->spec().name << "[" << i << "] " << to_string(tensors.problem());
        }
      }
    }
  }
}

TEST(AttentionReference, OfOneKeyCopiesItsValue) {
  Tensors tensors({.seq_q = 3, .seq_k = 1, .head_dim = 4, .dtype = DType::f64}, 3);
  reference_forward(tensors.problem(), tensors.forward());
  const auto out = to_doubles(tensors.out().view()), v = to_doubles(tensors.v().view());
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], v[i % 4]);
}

TEST(AttentionReference, RowsThatSeeNoKeyAreZeroWithMinusInfinityAndNoGradient) {
  Tensors tensors(small(Mask::bottom_right, 6, 4), 5);
  reference_forward(tensors.problem(), tensors.forward());
  reference_backward(tensors.problem(), tensors.backward());
  const auto out = to_doubles(tensors.out().view()), lse = to_doubles(tensors.lse().view()),
             dq = to_doubles(tensors.dq().view());
  for (std::size_t row = 0; row < lse.size(); ++row) {
    const bool blind = row % 6 < 2;
    EXPECT_EQ(std::isinf(lse[row]) && lse[row] < 0, blind);
    for (std::size_t d = 0; blind && d < 5; ++d) {
      EXPECT_EQ(out[row * 5 + d], 0.0);
      EXPECT_EQ(dq[row * 5 + d], 0.0);
    }
  }
}

TEST(AttentionOracle, AgreesWithTheReferenceWithinItsOwnBounds) {
  for (const Mask mask : {Mask::none, Mask::top_left, Mask::bottom_right}) {
    for (const auto& [seq_q, seq_k] : {std::pair{37, 70}, {70, 37}, {1, 1}, {1, 40}, {40, 1}}) {
      for (const float scale : {1e-3F, 1.0F, 30.0F}) {
        Tensors tensors(small(mask, seq_q, seq_k), 11, scale);
        tensors.run_forward(find_rung("reference"));
        EXPECT_LE(tensors.check_forward(), 1.0);
        tensors.run_backward(find_rung("reference"));
        EXPECT_LE(tensors.check_backward(), 1.0);
      }
    }
  }
}

TEST(AttentionOracle, OfAPartComputesAboutThatPartToTheSameValues) {
  const Problem p{
      .batch = 2, .heads_q = 4, .heads_kv = 2, .seq_q = 50, .seq_k = 60, .head_dim = 8, .mask = Mask::top_left};
  Tensors tensors(p, 13);
  const ForwardArgs args = tensors.forward();
  const ConstTensorView dout = tensors.backward().dout;
  const ForwardOracle whole = forward_oracle(p, args.q, args.k, args.v, {.budget = 1e18});
  const double cost = static_cast<double>(p.visible_pairs() * p.head_dim * p.heads_q * p.batch);
  const ForwardOracle part = forward_oracle(p, args.q, args.k, args.v, {.budget = cost / 4, .seed = 3});
  EXPECT_EQ(whole.fraction, 1.0);
  EXPECT_NEAR(part.fraction, 0.25, 0.01);
  std::int64_t computed = 0;
  for (std::size_t i = 0; i < whole.lse.value.size(); ++i) {
    if (std::isnan(part.lse.value[i])) continue;
    ++computed;
    EXPECT_EQ(part.lse.value[i], whole.lse.value[i]);
    EXPECT_EQ(part.out.value[i * 8 + 7], whole.out.value[i * 8 + 7]);
    EXPECT_EQ(part.out.tolerance[i * 8 + 7], whole.out.tolerance[i * 8 + 7]);
  }
  EXPECT_EQ(computed, std::lround(part.fraction * static_cast<double>(whole.lse.value.size())));
  EXPECT_FALSE(std::isnan(part.lse.value.front()));
  EXPECT_FALSE(std::isnan(part.lse.value.back()));

  const BackwardOracle all = backward_oracle(p, args.q, args.k, args.v, dout, {.budget = 1e18});
  const BackwardOracle half = backward_oracle(p, args.q, args.k, args.v, dout, {.budget = cost / 2, .seed = 3});
  EXPECT_EQ(half.fraction, 0.5);
  EXPECT_EQ(std::count_if(half.dk.value.begin(), half.dk.value.end(), [](double x) { return std::isnan(x); }),
            static_cast<std::ptrdiff_t>(half.dk.value.size() / 2));
  for (std::size_t i = 0; i < all.dq.value.size(); ++i) {
    const bool asked = !std::isnan(half.dq.value[i]);
    EXPECT_TRUE(!asked || half.dq.value[i] == all.dq.value[i]) << i;
  }
}

TEST(AttentionOracle, ChoosesByTheSeed) {
  const Problem p{.heads_q = 2, .heads_kv = 2, .seq_q = 100, .seq_k = 10, .head_dim = 2};
  Tensors tensors(p, 1);
  const ForwardArgs args = tensors.forward();
  auto chosen = [&](std::uint64_t seed) {
    std::vector<bool> rows;
    for (const double x : forward_oracle(p, args.q, args.k, args.v, {.budget = 400, .seed = seed}).lse.value) {
      rows.push_back(!std::isnan(x));
    }
    return rows;
  };
  EXPECT_EQ(chosen(1), chosen(1));
  EXPECT_NE(chosen(1), chosen(2));
}

TEST(AttentionBound, GrowsWithTheUnitOfStorage) {
  Problem p{.seq_q = 64, .seq_k = 64, .head_dim = 32};
  double last = 0;
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    p.dtype = dtype;
    Tensors tensors(p, 2);
    const ForwardArgs args = tensors.forward();
    const ForwardOracle oracle = forward_oracle(p, args.q, args.k, args.v);
    const double worst = *std::max_element(oracle.out.tolerance.begin(), oracle.out.tolerance.end());
    EXPECT_GT(worst, 2 * last);
    last = worst;
  }
  EXPECT_LT(last, 0.05);
}

double in_bf16(double value) { return to_double(to_bf16(static_cast<float>(value))); }

// dK_jd = Σ_i dS_ij Q_id, over so many queries that 1e-2 is no longer wide for a kernel that rounds P and dS to bf16,
// and that is as right as one whose sums are as short as those of the hand-out's tests.
TEST(AttentionBound, OfHalfWeightsGrowsWithTheRootOfASumsLength) {
  const Problem p{.seq_q = 4096, .seq_k = 16, .head_dim = 16};
  Tensors tensors(p, 5);
  const ForwardArgs args = tensors.forward();
  const ConstTensorView dout = tensors.backward().dout;
  const BackwardOracle oracle = backward_oracle(p, args.q, args.k, args.v, dout, {.summed_unit = kHalfWeights});
  const std::vector<double> q = to_doubles(args.q), k = to_doubles(args.k), v = to_doubles(args.v),
                            go = to_doubles(dout);
  const auto dot = [](const double* a, const double* b) { return std::inner_product(a, a + 16, b, 0.0); };
  std::vector<double> dk(k.size());
  for (std::size_t i = 0; i < 4096; ++i) {
    std::array<double, 16> weight{}, slope{};
    double sum = 0, row_term = 0;
    for (std::size_t j = 0; j < 16; ++j) sum += weight[j] = std::exp(dot(&q[i * 16], &k[j * 16]) / 4);
    for (std::size_t j = 0; j < 16; ++j) {
      slope[j] = dot(&go[i * 16], &v[j * 16]);
      row_term += (weight[j] /= sum) * slope[j];
    }
    for (std::size_t j = 0; j < 16; ++j) {
      const double ds = in_bf16(weight[j] * (slope[j] - row_term) / 4);
      for (std::size_t d = 0; d < 16; ++d) dk[j * 16 + d] += ds * q[i * 16 + d];
    }
  }
  double worst = 0, worst_of_tests = 0;
  for (std::size_t i = 0; i < dk.size(); ++i) {
    const double exact = oracle.dk.value[i], error = std::abs(dk[i] - exact);
    worst = std::max(worst, error / oracle.dk.tolerance[i]);
    worst_of_tests = std::max(worst_of_tests, error / (1e-2 * (1 + std::abs(exact))));
  }
  EXPECT_LT(worst, 1);
  EXPECT_GT(worst, 0.2);  // no looser than it has to be
  EXPECT_GT(worst_of_tests, 0.5);
  EXPECT_EQ(oracle.dq.tolerance, backward_oracle(p, args.q, args.k, args.v, dout).dq.tolerance) << "sums over keys";
}

}  // namespace
}  // namespace syslab::attention
