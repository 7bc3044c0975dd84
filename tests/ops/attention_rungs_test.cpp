// Every rung of the ladder against the oracle, within derived bounds, on fresh inputs.
#include <fmt/format.h>

#include <cstring>

#include "attention_fixture.hpp"
#include "device/parallel.hpp"
#include "ops/attention/autograd.hpp"
#include "ops/attention/rungs.hpp"
#include "tests/ops/host_rungs.hpp"

namespace syslab::attention {
namespace {

struct RungCase {
  const Rung* rung;
  DType dtype;
};

std::vector<RungCase> rung_cases() {
  std::vector<RungCase> cases;
  for (const Rung& rung : ops::host_rungs(ladder())) {
    for (const DType dtype : rung.dtypes) cases.push_back({&rung, dtype});
  }
  static const std::vector<Rung> materialised{as_rung(find_autograd_rung("literal")),
                                              as_rung(find_autograd_rung("fused_softmax"))};
  for (const Rung& rung : materialised) {
    for (const DType dtype : rung.dtypes) cases.push_back({&rung, dtype});
  }
  return cases;
}

class EveryRung : public testing::TestWithParam<RungCase> {
 protected:
  const Rung& rung_ = *GetParam().rung;
  DType dtype_ = GetParam().dtype;

  // Forward on poisoned outputs; then backward from an exactly rounded O and L.
  void expect_right(Problem problem, float input_scale = 1.0F, Layout layout = Layout::heads_outer) {
    problem.dtype = dtype_;
    SCOPED_TRACE(fmt::format("{} on {}, inputs × {}", rung_.name, to_string(problem), input_scale));
    ASSERT_EQ(rung_.supports(problem, Pass::forward), std::nullopt);
    Tensors tensors(problem, ++seed_, input_scale, layout);
    tensors.run_forward(rung_);
    worst_forward_ = std::max(worst_forward_, tensors.check_forward());
    tensors.store_exact_forward();
    tensors.run_backward(rung_);
    worst_backward_ = std::max(worst_backward_, tensors.check_backward());
  }

  void TearDown() override {
    RecordProperty("worst_forward_ratio", fmt::format("{:.3g}", worst_forward_));
    RecordProperty("worst_backward_ratio", fmt::format("{:.3g}", worst_backward_));
  }

  std::uint64_t seed_ = 1000;
  double worst_forward_ = 0, worst_backward_ = 0;
};

TEST_P(EveryRung, IsRightAtTileEdgesPrimesAndLengthOne) {
  for (const Mask mask : {Mask::none, Mask::top_left, Mask::bottom_right}) {
    for (const auto& [seq_q, seq_k] :
         {std::pair{1, 1}, {1, 97}, {97, 1}, {31, 33}, {64, 64}, {65, 63}, {127, 129}, {128, 257}, {211, 89}}) {
      expect_right({.heads_q = 2, .heads_kv = 2, .seq_q = seq_q, .seq_k = seq_k, .head_dim = 16, .mask = mask});
    }
  }
}

TEST_P(EveryRung, IsRightForEveryKindOfHeadDim) {
  for (const int head_dim : {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 40, 64, 65, 80, 96, 128, 129, 160, 192, 255, 256}) {
    expect_right({.seq_q = 37, .seq_k = 41, .head_dim = head_dim, .mask = Mask::bottom_right});
  }
}

TEST_P(EveryRung, IsRightForGroupedQueryHeads) {
  for (const auto& [heads_q, heads_kv] : {std::pair{6, 1}, {6, 2}, {6, 3}, {6, 6}}) {
    expect_right({.batch = 2,
                  .heads_q = heads_q,
                  .heads_kv = heads_kv,
                  .seq_q = 33,
                  .seq_k = 50,
                  .head_dim = 24,
                  .mask = Mask::top_left});
  }
}

TEST_P(EveryRung, IsRightForStridedViews) {
  for (const Layout layout : {Layout::heads_inner, Layout::padded}) {
    expect_right(
        {.batch = 2, .heads_q = 4, .heads_kv = 2, .seq_q = 45, .seq_k = 70, .head_dim = 20, .mask = Mask::bottom_right},
        1.0F, layout);
  }
}

TEST_P(EveryRung, IsRightForTinyAndLargeInputs) {
  for (const float scale : {1e-6F, 1e-3F, 0.1F, 4.0F, 16.0F}) {
    expect_right({.heads_q = 2, .heads_kv = 1, .seq_q = 70, .seq_k = 70, .head_dim = 32, .mask = Mask::top_left},
                 scale);
  }
}

TEST_P(EveryRung, GivesNoNanWhenScoresReachTenThousand) {
  // |q·k|·scale ≈ 100·100·√32/√32: one key takes all, and exp of anything unshifted overflows.
  expect_right({.seq_q = 80, .seq_k = 90, .head_dim = 32}, 100.0F);
  expect_right({.seq_q = 80, .seq_k = 90, .head_dim = 32, .scale = -0.2F, .mask = Mask::bottom_right}, 100.0F);
}

TEST_P(EveryRung, IsRightForADefaultAndANegativeScale) {
  expect_right({.seq_q = 40, .seq_k = 30, .head_dim = 12, .scale = -0.5F});
  expect_right({.seq_q = 40, .seq_k = 30, .head_dim = 12, .scale = 3.0F});
}

TEST_P(EveryRung, StaysWellInsideItsBoundsButNotFarInside) {
  expect_right({.heads_q = 2, .heads_kv = 2, .seq_q = 256, .seq_k = 256, .head_dim = 64});
  for (const double ratio : {worst_forward_, worst_backward_}) {
    EXPECT_LT(ratio, 0.9) << "the bound is about to fail";
    // The fp64 rung adds in the oracle's own order, so its error may be nothing at all.
    EXPECT_GT(ratio, dtype_ == DType::f64 ? -1.0 : 0.002) << "the bound is too loose to catch a fault";
  }
}

class DeterministicRung : public EveryRung {};

TEST_P(DeterministicRung, RepeatsItselfBitForBitWhateverTheThreads) {
  const Problem problem{.batch = 2,
                        .heads_q = 4,
                        .heads_kv = 2,
                        .seq_q = 330,
                        .seq_k = 350,
                        .head_dim = 65,
                        .mask = Mask::bottom_right,
                        .dtype = dtype_};
  auto bits = [&](int threads) {
    const int before = device::thread_count();
    device::set_thread_count(threads);
    Tensors tensors(problem, 77);
    tensors.run_forward(rung_);
    tensors.run_backward(rung_);
    device::set_thread_count(before);
    std::string all;
    for (auto* output : {&tensors.out(), &tensors.lse(), &tensors.dq(), &tensors.dk(), &tensors.dv()}) {
      const auto view = output->view();
      all.append(static_cast<const char*>(view.data), static_cast<std::size_t>(view.elements()) * size_of(view.dtype));
    }
    return all;
  };
  const std::string one = bits(1);
  EXPECT_EQ(one, bits(1));
  EXPECT_EQ(one, bits(2));
  EXPECT_EQ(one, bits(3));
}

TEST(ThreadsWorth, GrowWithTheWorkUpToThoseThereAre) {
  const int before = device::thread_count();
  device::set_thread_count(3);
  Problem problem{.heads_q = 4, .heads_kv = 4, .seq_q = 128, .seq_k = 128, .head_dim = 64};
  EXPECT_EQ(threads_worth(problem, Pass::forward), 1) << "a smoke run's case is a third of a millisecond";
  EXPECT_EQ(threads_worth(problem, Pass::backward), 1);
  // As many as the test of repeatability above asks for, lest it compare one thread with one thread.
  problem = {
      .batch = 2, .heads_q = 4, .heads_kv = 2, .seq_q = 330, .seq_k = 350, .head_dim = 65, .mask = Mask::bottom_right};
  EXPECT_EQ(threads_worth(problem, Pass::forward), device::thread_count());
  EXPECT_EQ(threads_worth(problem, Pass::backward), device::thread_count());
  device::set_thread_count(before);
}

TEST_P(EveryRung, UsesTheCallersWorkspaceWhenItIsLargeEnough) {
  const Problem problem{.heads_q = 2, .heads_kv = 2, .seq_q = 100, .seq_k = 90, .head_dim = 16, .dtype = dtype_};
  Tensors tensors(problem, 5);
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    const std::size_t bytes = rung_.workspace_bytes(problem, pass);
    const device::Buffer memory(bytes, "test workspace");
    const ops::Workspace workspace{memory.data(), bytes};
    const std::size_t before = device::MemoryLog::global().events().size();
    pass == Pass::forward ? tensors.run_forward(rung_, workspace) : tensors.run_backward(rung_, workspace);
    EXPECT_EQ(device::MemoryLog::global().events().size(), before) << "took memory of its own";
  }
  tensors.check_forward();
  tensors.check_backward();
}

std::string name_of(const testing::TestParamInfo<RungCase>& info) {
  return info.param.rung->name + "_" + std::string(to_string(info.param.dtype));
}

// Those that promise it: the others have no such test, instead of one that is skipped.
std::vector<RungCase> deterministic_cases() {
  std::vector<RungCase> cases = rung_cases();
  std::erase_if(cases, [](const RungCase& one) { return !one.rung->deterministic; });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Ladder, EveryRung, testing::ValuesIn(rung_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Ladder, DeterministicRung, testing::ValuesIn(deterministic_cases()), name_of);

}  // namespace
}  // namespace syslab::attention
