// NaN in what goes in comes out where it was seen, also where the keys of a row are split among blocks: a result that
// looks like a number, or like a row that sees no key, would hide it.
#include <cmath>
#include <functional>
#include <limits>

#include "device/properties.hpp"
#include "device/stream.hpp"
#include "ops/attention/mma/plan.hpp"
#include "ops/attention/wgmma/plan.hpp"
#include "tests/ops/gpu_attention_fixture.hpp"

namespace syslab::attention {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Result {
  std::vector<double> out, lse;
};

class NanIn : public device::GpuTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    device::GpuTest::SetUp();
    if (testing::Test::IsSkipped()) return;
    if (!rung_.unavailable.empty()) GTEST_SKIP() << rung_.unavailable;
    if (rung_.name != "flash_wgmma") return;
    const int sm = device::properties(device::place_of(stream)).sm;
    if (sm != 90)
      GTEST_SKIP() << rung_.name << " needs a GPU of compute capability 9.0, not " << sm / 10 << "." << sm % 10;
  }

  const Rung& rung_ = find_rung(GetParam());

  // One head of many keys: too few rows of queries for the GPU.
  Problem problem_of(std::int64_t head_dim, Mask mask) const {
    return {.seq_q = 600, .seq_k = 1500, .head_dim = head_dim, .mask = mask, .dtype = rung_.dtypes.front()};
  }
  void expect_split(const Problem& problem) const {
    if (problem.dtype == DType::f32) return;  // cut whenever there are so few rows: fp32/plan.cpp
    const int multiprocessors = device::properties(device::place_of(stream)).multiprocessors;
    const std::int64_t splits = rung_.name == "flash_wgmma" ? wgmma::plan_forward(problem, multiprocessors).splits
                                                            : plan_forward(problem, multiprocessors).splits;
    ASSERT_GT(splits, 1) << to_string(problem);
  }

  Result run(const Problem& problem, const std::function<void(Tensors&)>& harm = {}) {
    Tensors tensors(problem, 21);
    if (harm) harm(tensors);
    const device::Buffer lent = to_gpu(std::vector<char>(rung_.workspace_bytes(problem, Pass::forward), 'x'));
    ForwardThere(tensors, stream).run(rung_, {lent.data(), lent.bytes()});
    return {to_doubles(tensors.out().view()), to_doubles(tensors.lse().view())};
  }
  static void put_nan(check::GuardedTensor& tensor, std::int64_t row, std::int64_t column) {
    std::vector<double> values = to_doubles(tensor.view());
    values[static_cast<std::size_t>(row * tensor.spec().shape[3] + column)] = kNan;
    Tensors::store(tensor.view(), values);
  }
};

constexpr std::int64_t kColumn = 3;  // that is harmed

TEST_P(NanIn, AQueryIsTheNanOfItsRowAlone) {
  for (const std::int64_t head_dim : {32, 64, 128}) {
    for (const Mask mask : {Mask::none, Mask::bottom_right}) {
      const Problem problem = problem_of(head_dim, mask);
      SCOPED_TRACE(to_string(problem));
      ASSERT_NO_FATAL_FAILURE(expect_split(problem));
      constexpr std::int64_t kRow = 321;
      const Result clean = run(problem),
                   harmed = run(problem, [](Tensors&tensors) { put_nan(tensors.q(), kRow, kColumn); });
      for (std::int64_t row = 0; row < problem.seq_q; ++row) {
        const auto at = static_cast<std::size_t>(row);
        if (row != kRow) {
          ASSERT_EQ(harmed.lse[at], clean.lse[at]) << row;
        } else {
          EXPECT_TRUE(std::isnan(harmed.lse[at])) << harmed.lse[at];
        }
        for (std::size_t d = at * head_dim; d < (at + 1) * head_dim; ++d) {
          if (row != kRow) {
            ASSERT_EQ(harmed.out[d], clean.out[d]) << row;
          } else {
            ASSERT_TRUE(std::isnan(harmed.out[d])) << harmed.out[d];
          }
        }
      }
    }
  }
}

TEST_P(NanIn, AKeyIsTheNanOfEveryRowThatSeesIt) {
  for (const std::int64_t head_dim : {32, 64, 128}) {
    for (const Mask mask : {Mask::none, Mask::bottom_right}) {
      const Problem problem = problem_of(head_dim, mask);
      SCOPED_TRACE(to_string(problem));
      ASSERT_NO_FATAL_FAILURE(expect_split(problem));
      // Rows of the causal mask see 901 keys at least.
      constexpr std::int64_t kLate = 1200;
      const Result clean = run(problem),
                   harmed = run(problem, [](Tensors&tensors) { put_nan(tensors.k(), kLate, kColumn); });
      for (std::int64_t row = 0; row < problem.seq_q; ++row) {
        const auto at = static_cast<std::size_t>(row);
        const bool sees = problem.visible_keys(row) > kLate;
        ASSERT_EQ(std::isnan(harmed.lse[at]), sees) << row;
        if (!sees) {
          ASSERT_NEAR(harmed.lse[at], clean.lse[at], 1e-5) << row;
        }
        for (std::size_t d = at * head_dim; d < (at + 1) * head_dim; ++d) {
          ASSERT_EQ(std::isnan(harmed.out[d]), sees) << row;
        }
      }
    }
  }
}

TEST_P(NanIn, AValueIsTheNanOfItsColumnInEveryRowThatSeesIt) {
  for (const std::int64_t head_dim : {32, 64, 128}) {
    const Problem problem = problem_of(head_dim, Mask::bottom_right);
    SCOPED_TRACE(to_string(problem));
    constexpr std::int64_t kLate = 1200, kTile = 256;  // a weight of 0 in the same tile makes NaN of it as well
    const Result clean = run(problem),
                 harmed = run(problem, [](Tensors&tensors) { put_nan(tensors.v(), kLate, kColumn); });
    for (std::int64_t row = 0; row < problem.seq_q; ++row) {
      const auto at = static_cast<std::size_t>(row);
      ASSERT_EQ(harmed.lse[at], clean.lse[at]) << row;
      const double found = harmed.out[at * head_dim + kColumn];
      if (problem.visible_keys(row) > kLate) {
        ASSERT_TRUE(std::isnan(found)) << row << " " << found;
      } else if (problem.visible_keys(row) <= kLate - kTile) {
        ASSERT_FALSE(std::isnan(found)) << row;
      }
      ASSERT_FALSE(std::isnan(harmed.out[at * head_dim + kColumn + 1])) << row;
    }
  }
}

// Partial results are read some splits at a time: what comes of the first must not get lost on the way to the last.
TEST_P(NanIn, AllTheFirstKeysIsStillThereAfterTheLast) {
  Problem problem = problem_of(64, Mask::none);
  problem.seq_q = 1;
  problem.seq_k = 8192;
  ASSERT_NO_FATAL_FAILURE(expect_split(problem));
  for (const std::int64_t last : {1, 4096, 8000}) {
    const Result harmed = run(problem, [last](Tensors& tensors) {
      std::vector<double> keys = to_doubles(tensors.k().view());
      std::fill_n(keys.begin(), last * 64, kNan);
      Tensors::store(tensors.k().view(), keys);
    });
    EXPECT_TRUE(std::isnan(harmed.lse[0])) << last << ": " << harmed.lse[0];
    EXPECT_TRUE(std::isnan(harmed.out[0])) << last << ": " << harmed.out[0];
  }
}

INSTANTIATE_TEST_SUITE_P(Flash, NanIn, testing::Values("flash_mma", "flash_wgmma", "flash_fp32", "flash_tf32"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace syslab::attention
