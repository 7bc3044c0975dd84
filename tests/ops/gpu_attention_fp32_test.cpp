// What flash_fp32 promises beyond the bounds that every rung keeps: the accuracy of plain fp32 multiply-adds, whatever
// the size of the numbers, and an honest answer to those that are none.
#include <fmt/format.h>

#include <cmath>

#include "ops/attention/oracle/oracle.hpp"
#include "tests/ops/gpu_attention_fixture.hpp"

namespace syslab::attention {
namespace {

// √(Σ(found − exact)² / Σ exact²)
double relative_error(check::GuardedTensor& found, const Expected& exact) {
  const std::vector<double> values = to_doubles(found.view());
  double errors = 0, squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    errors += std::pow(values[i] - exact.value[i], 2);
    squares += std::pow(exact.value[i], 2);
  }
  return std::sqrt(errors / squares);
}

void scale_values(check::GuardedTensor& tensor, double factor) {
  std::vector<double> values = to_doubles(tensor.view());
  for (double& value : values) value *= factor;
  Tensors::store(tensor.view(), values);
}

class FlashFp32 : public device::GpuTest {
 protected:
  const Rung& rung_ = find_rung("flash_fp32");

  // The yardstick is naive: fp32 multiply-adds on the CPU.
  void expect_as_exact_as_multiply_adds(const Problem& problem, double input_scale = 1, double gradient_scale = 1) {
    SCOPED_TRACE(fmt::format("{}, values × {}, dO × {}", to_string(problem), input_scale, gradient_scale));
    Tensors ours(problem, 7), plain(problem, 7);
    for (Tensors* tensors : {&ours, &plain}) {
      scale_values(tensors->v(), input_scale);
      scale_values(tensors->dout(), gradient_scale);
    }
    run_forward_there(rung_, ours, stream);
    plain.run_forward(find_rung("naive"));
    const ForwardOracle forward =
        forward_oracle(problem, ours.q().view(), ours.k().view(), ours.v().view(), {.budget = 1e18});
    EXPECT_LE(relative_error(ours.out(), forward.out), 1.5 * relative_error(plain.out(), forward.out));
    ours.store_exact_forward();
    plain.store_exact_forward();
    run_backward_there(rung_, ours, stream);
    plain.run_backward(find_rung("naive"));
    const BackwardOracle backward = backward_oracle(problem, ours.q().view(), ours.k().view(), ours.v().view(),
                                                    ours.dout().view(), {.budget = 1e18});
    EXPECT_LE(relative_error(ours.dq(), backward.dq), 1.5 * relative_error(plain.dq(), backward.dq));
    EXPECT_LE(relative_error(ours.dk(), backward.dk), 1.5 * relative_error(plain.dk(), backward.dk));
    EXPECT_LE(relative_error(ours.dv(), backward.dv), 1.5 * relative_error(plain.dv(), backward.dv));
  }
};

TEST_F(FlashFp32, IsAboutAsExactAsPlainMultiplyAdds) {
  for (const int head_dim : {16, 64, 128}) {
    for (const Mask mask : {Mask::none, Mask::top_left}) {
      expect_as_exact_as_multiply_adds({.seq_q = 512, .seq_k = 512, .head_dim = head_dim, .mask = mask});
    }
  }
}

TEST_F(FlashFp32, LosesNothingWhenValuesAreTinyOrHuge) {
  const Problem problem{.seq_q = 300, .seq_k = 300, .head_dim = 64, .mask = Mask::top_left};
  expect_as_exact_as_multiply_adds(problem, 1e-25);
  expect_as_exact_as_multiply_adds(problem, 1e25);
  expect_as_exact_as_multiply_adds(problem, 1, 1e-25);
  expect_as_exact_as_multiply_adds(problem, 1, 1e20);
}

TEST_F(FlashFp32, GivesZerosForZeros) {
  Tensors tensors({.seq_q = 70, .seq_k = 70, .head_dim = 32}, 3);
  scale_values(tensors.v(), 0);
  scale_values(tensors.dout(), 0);
  run_forward_there(rung_, tensors, stream);
  tensors.check_forward();
  tensors.store_exact_forward();
  run_backward_there(rung_, tensors, stream);
  tensors.check_backward();
}

// A row that holds no number has no output; rows beside it in the same tile keep theirs.
TEST_F(FlashFp32, KeepsNumbersThatAreNoneToTheirRow) {
  for (const double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const Problem problem{.seq_q = 40, .seq_k = 60, .head_dim = 16};
    Tensors clean(problem, 5), harmed(problem, 5);
    std::vector<double> queries = to_doubles(harmed.q().view());
    queries[10 * 16 + 3] = value;
    Tensors::store(harmed.q().view(), queries);
    run_forward_there(rung_, clean, stream);
    run_forward_there(rung_, harmed, stream);
    const std::vector<double> expected = to_doubles(clean.out().view()), found = to_doubles(harmed.out().view());
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (i / 16 == 10) {
        EXPECT_TRUE(std::isnan(found[i])) << i;
      } else {
        ASSERT_EQ(found[i], expected[i]) << i;
      }
    }
  }
}

}  // namespace
}  // namespace syslab::attention
