// The oracle on a GPU against the CPU's: the same values, the same bounds.
#include <fmt/format.h>

#include <cmath>

#include "ops/attention/oracle/oracle_cuda.hpp"
#include "tests/ops/gpu_attention_fixture.hpp"

namespace syslab::attention {
namespace {

Expected fetched(const Expected& there, device::Stream stream) {
  const auto count = static_cast<std::size_t>(there.there.tolerances);
  Expected here{std::vector<double>(count), std::vector<double>(count)};
  device::copy_now(here.value.data(), there.there.value, count * sizeof(double), stream);
  device::copy_now(here.tolerance.data(), there.there.tolerance, count * sizeof(double), stream);
  return here;
}

// Sums of a few hundred terms in another order, and weights whose scores, up to some thousands, are rounded: both far
// below what the bound allows. The bound's prefix is rounded up in its 20th bit; what it allows for underflow is 2¹⁰
// times the CPU's.
void expect_equal(const Expected& found, const Expected& wanted, const char* name) {
  ASSERT_EQ(found.value.size(), wanted.value.size());
  double largest = 0;
  for (const double value : wanted.value) largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
  for (std::size_t i = 0; i < found.value.size(); ++i) {
    if (found.value[i] != wanted.value[i]) {
      ASSERT_NEAR(found.value[i], wanted.value[i], 1e-12 * (1 + largest) + 1e-6 * wanted.tolerance[i])
          << name << " " << i;
    }
    ASSERT_GE(found.tolerance[i], wanted.tolerance[i] * (1 - 1e-9)) << name << " " << i;
    ASSERT_LE(found.tolerance[i], wanted.tolerance[i] * (1 + 4e-6) + 1e-30) << name << " " << i;
  }
}

class DeviceOracle : public device::GpuTest {
 protected:
  void expect_as_on_the_cpu(const Problem& p, float scale = 1, Layout layout = Layout::heads_outer) {
    SCOPED_TRACE(fmt::format("{}, inputs × {}", to_string(p), scale));
    Tensors tensors(p, 11, scale, layout);
    const Mirror q(tensors.q().view(), stream), k(tensors.k().view(), stream), v(tensors.v().view(), stream),
        dout(tensors.dout().view(), stream);
    const Part all{.budget = 1e18};
    const ForwardOracle forward = forward_oracle(p, tensors.q().view(), tensors.k().view(), tensors.v().view(), all);
    const auto there = forward_expected_cuda(p, q.view(), k.view(), v.view(), stream);
    expect_equal(fetched(there[0], stream), forward.out, "out");
    expect_equal(fetched(there[1], stream), forward.lse, "lse");
    const BackwardOracle backward =
        backward_oracle(p, tensors.q().view(), tensors.k().view(), tensors.v().view(), tensors.dout().view(), all);
    const auto gradients = backward_expected_cuda(p, q.view(), k.view(), v.view(), dout.view(), stream);
    expect_equal(fetched(gradients[0], stream), backward.dq, "dq");
    expect_equal(fetched(gradients[1], stream), backward.dk, "dk");
    expect_equal(fetched(gradients[2], stream), backward.dv, "dv");
  }
};

TEST_F(DeviceOracle, EqualsTheCpusForEveryDtypeAndMask) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    for (const Mask mask : {Mask::none, Mask::top_left, Mask::bottom_right}) {
      expect_as_on_the_cpu({.batch = 2,
                            .heads_q = 4,
                            .heads_kv = 2,
                            .seq_q = 77,
                            .seq_k = 130,
                            .head_dim = 24,
                            .mask = mask,
                            .dtype = dtype});
    }
  }
}

TEST_F(DeviceOracle, EqualsTheCpusForOddShapes) {
  const std::int64_t shapes[][3] = {{1, 1, 1}, {1, 100, 16}, {33, 31, 64}, {64, 64, 65}, {130, 20, 128}, {40, 70, 256}};
  for (const auto& [seq_q, seq_k, head_dim] : shapes) {
    for (const Mask mask : {Mask::none, Mask::top_left, Mask::bottom_right}) {
      expect_as_on_the_cpu(
          {.heads_q = 3, .heads_kv = 1, .seq_q = seq_q, .seq_k = seq_k, .head_dim = head_dim, .mask = mask});
    }
  }
}

TEST_F(DeviceOracle, EqualsTheCpusForLargeScoresAndOtherLayouts) {
  const Problem p{.batch = 2,
                  .heads_q = 2,
                  .heads_kv = 2,
                  .seq_q = 96,
                  .seq_k = 96,
                  .head_dim = 64,
                  .mask = Mask::top_left,
                  .dtype = DType::bf16};
  expect_as_on_the_cpu(p, 8.0F, Layout::heads_inner);
  expect_as_on_the_cpu(p, 30.0F, Layout::padded);
  expect_as_on_the_cpu(p, 0.01F, Layout::padded);
}

TEST_F(DeviceOracle, APartHoldsTheSameNumbersAndLeavesTheRestOut) {
  const Problem p{.batch = 3, .heads_q = 4, .heads_kv = 2, .seq_q = 200, .seq_k = 200, .head_dim = 32};
  Tensors tensors(p, 5);
  const Mirror q(tensors.q().view(), stream), k(tensors.k().view(), stream), v(tensors.v().view(), stream),
      dout(tensors.dout().view(), stream);
  const Part part{.budget = 200.0 * 200 * 32 * 5, .seed = 3};
  const auto compare = [&](const Expected& some, const Expected& all) {
    const Expected a = fetched(some, stream), b = fetched(all, stream);
    std::int64_t computed = 0;
    for (std::size_t i = 0; i < a.value.size(); ++i) {
      if (std::isnan(a.value[i])) continue;
      ++computed;
      ASSERT_EQ(a.value[i], b.value[i]);
      ASSERT_EQ(a.tolerance[i], b.tolerance[i]);
    }
    EXPECT_FALSE(std::isnan(a.value.front()) || std::isnan(a.value.back()));
    EXPECT_NEAR(some.fraction, static_cast<double>(computed) / static_cast<double>(some.there.tolerances), 1e-12);
    EXPECT_LT(some.fraction, 0.7);
    EXPECT_EQ(all.fraction, 1);
  };
  const auto some = forward_expected_cuda(p, q.view(), k.view(), v.view(), stream, part),
             all = forward_expected_cuda(p, q.view(), k.view(), v.view(), stream);
  for (int n = 0; n < 2; ++n) compare(some[static_cast<std::size_t>(n)], all[static_cast<std::size_t>(n)]);
  const auto some_back = backward_expected_cuda(p, q.view(), k.view(), v.view(), dout.view(), stream, part),
             all_back = backward_expected_cuda(p, q.view(), k.view(), v.view(), dout.view(), stream);
  for (std::size_t n = 0; n < 3; ++n) compare(some_back[n], all_back[n]);
}

}  // namespace
}  // namespace syslab::attention
