// What flash_wgmma's backward passes promise beyond what every rung does (gpu_attention_rungs_test.cpp): lengths around
// the edges of both tiles, keys that no query sees, many heads a section, graphs, and what they refuse.
#include <fmt/format.h>

#include "device/cuda/graph.hpp"
#include "tests/ops/gpu_flash_wgmma_fixture.hpp"

namespace syslab::attention {
namespace {

class FlashWgmmaBackward : public FlashWgmmaTest, public testing::WithParamInterface<const char*> {
 protected:
  FlashWgmmaBackward() : FlashWgmmaTest(GetParam()) {}

  void expect_right(Problem problem, float scale = 1.0F, Layout layout = Layout::heads_outer) {
    for (const DType dtype : rung_.dtypes) {
      problem.dtype = dtype;
      ASSERT_EQ(rung_.supports(problem, Pass::backward), std::nullopt);
      SCOPED_TRACE(fmt::format("{}, inputs × {}", to_string(problem), scale));
      Tensors tensors(problem, ++seed_, scale, layout);
      tensors.store_exact_forward();
      run_backward_there(rung_, tensors, stream);
      tensors.check_backward();
    }
  }

  std::uint64_t seed_ = 8000;
  static constexpr Problem kSeveralHeads{.batch = 2,
                                         .heads_q = 12,
                                         .heads_kv = 6,
                                         .seq_q = 700,
                                         .seq_k = 700,
                                         .head_dim = 64,
                                         .mask = Mask::top_left,
                                         .dtype = DType::bf16};
};

TEST_P(FlashWgmmaBackward, IsRightAroundTheEdgesOfEveryTile) {
  for (const std::int64_t head_dim : {64, 128, 192, 256}) {
    for (const Mask mask : {Mask::none, Mask::top_left, Mask::bottom_right}) {
      for (const auto& [seq_q, seq_k] :
           {std::pair{1, 1}, {63, 65}, {64, 128}, {65, 129}, {128, 127}, {129, 257}, {191, 353}, {257, 129}}) {
        expect_right({.heads_q = 2, .heads_kv = 1, .seq_q = seq_q, .seq_k = seq_k, .head_dim = head_dim, .mask = mask});
      }
    }
  }
}

TEST_P(FlashWgmmaBackward, IsRightAtEveryHeadDim) {
  for (std::int64_t head_dim = 8; head_dim <= 256; head_dim += 8) {
    expect_right({.heads_q = 2, .heads_kv = 1, .seq_q = 97, .seq_k = 150, .head_dim = head_dim, .mask = Mask::top_left},
                 1.0F, Layout::heads_inner);
  }
}

TEST_P(FlashWgmmaBackward, KeysThatNoQuerySeesGetZeros) {  // whole blocks of them
  for (const std::int64_t head_dim : {64, 128, 192, 256}) {
    expect_right(
        {.heads_q = 2, .heads_kv = 2, .seq_q = 70, .seq_k = 600, .head_dim = head_dim, .mask = Mask::top_left});
  }
}

TEST_P(FlashWgmmaBackward, RowsThatSeeNothingGiveNothing) {
  for (const std::int64_t head_dim : {64, 192, 256}) {
    expect_right(
        {.heads_q = 3, .heads_kv = 3, .seq_q = 500, .seq_k = 70, .head_dim = head_dim, .mask = Mask::bottom_right});
  }
}

TEST_P(FlashWgmmaBackward, IsRightWithPeakedWeightsAndANegativeScale) {
  for (const float scale : {0.0F, -0.2F, 1.0F}) {
    for (const std::int64_t head_dim : {64, 256}) {
      expect_right({.heads_q = 2, .heads_kv = 2, .seq_q = 300, .seq_k = 300, .head_dim = head_dim, .scale = scale},
                   3.0F);
    }
  }
}

TEST_P(FlashWgmmaBackward, IsRightWithSeveralHeads) {
  for (const std::int64_t head_dim : {64, 192, 256}) {
    Problem problem = kSeveralHeads;
    problem.head_dim = head_dim;
    for (const Mask mask : {Mask::none, Mask::top_left, Mask::bottom_right}) {
      problem.mask = mask;
      expect_right(problem);
    }
  }
}

TEST_P(FlashWgmmaBackward, GivesTheSameBitsEveryTimeWherePromised) {
  for (const std::int64_t head_dim : {64, 128, 192, 256}) {
    Problem problem = kSeveralHeads;
    problem.head_dim = head_dim;
    SCOPED_TRACE(to_string(problem));
    Tensors tensors(problem, 7);
    run_forward_there(find_rung("flash_wgmma"), tensors, stream);
    BackwardThere there(tensors, stream);
    there.run(rung_);
    const std::vector<double> dq = to_doubles(tensors.dq().view()), dk = to_doubles(tensors.dk().view()),
                              dv = to_doubles(tensors.dv().view());
    for (int run = 0; run < 30; ++run) {
      there.run(rung_);
      if (rung_.deterministic) {
        ASSERT_EQ(to_doubles(tensors.dq().view()), dq) << "run " << run;
      }
      ASSERT_EQ(to_doubles(tensors.dk().view()), dk) << "run " << run;
      ASSERT_EQ(to_doubles(tensors.dv().view()), dv) << "run " << run;
    }
  }
}

TEST_P(FlashWgmmaBackward, StaysInALentWorkspaceAndLeavesOneThatIsTooSmallAlone) {
  constexpr std::size_t kBefore = 4, kBehind = 64;
  const std::size_t bytes = rung_.workspace_bytes(kSeveralHeads, Pass::backward);
  const device::Buffer lent = to_gpu(std::vector<char>(kBefore + bytes + kBehind, 'x'));
  Tensors tensors(kSeveralHeads, 12);
  tensors.store_exact_forward();
  BackwardThere(tensors, stream).run(rung_, {lent.as<char>() + kBefore, bytes});
  tensors.check_backward();
  const std::vector<char> after = to_host<char>(lent);
  EXPECT_EQ(std::string(after.begin(), after.begin() + kBefore), std::string(kBefore, 'x'));
  EXPECT_EQ(std::string(after.end() - kBehind, after.end()), std::string(kBehind, 'x'));
  EXPECT_NE(std::string(after.begin() + kBefore, after.end() - kBehind), std::string(bytes, 'x')) << "was not used";

  const std::vector<char> pattern(bytes / 2, 'x');
  const device::Buffer small = to_gpu(pattern);
  tensors.poison();
  tensors.store_exact_forward();
  BackwardThere(tensors, stream).run(rung_, {small.data(), small.bytes()});
  tensors.check_backward();
  EXPECT_EQ(to_host<char>(small), pattern);
}

TEST_P(FlashWgmmaBackward, CanBeRecordedInAGraph) {
  Tensors tensors(kSeveralHeads, 13);
  tensors.store_exact_forward();
  BackwardThere there(tensors, stream);
  const device::Buffer lent(rung_.workspace_bytes(kSeveralHeads, Pass::backward), "test", stream);
  const auto call = [&] { rung_.backward(kSeveralHeads, there.args(), {lent.data(), lent.bytes()}, stream); };
  call();
  device::synchronize(stream);
  const auto captured = device::capture(stream, call);
  ASSERT_TRUE(captured.graph) << captured.why;
  for (int replay = 0; replay < 5; ++replay) captured.graph->replay(stream);  // sums and turns begin at zero every time
  there.bring_back();
  tensors.check_backward();
}

TEST_P(FlashWgmmaBackward, RefusesWhatItCannotTake) {
  Problem wide = kSeveralHeads;
  wide.head_dim = 264;
  ASSERT_TRUE(rung_.supports(wide, Pass::backward));
  wide.head_dim = 256;
  EXPECT_EQ(rung_.supports(wide, Pass::backward), std::nullopt);
  Tensors tensors(kSeveralHeads, 14);
  tensors.store_exact_forward();
  BackwardThere there(tensors, stream);
  BackwardArgs args = there.args();
  args.dout.strides[1] = 0;  // one head for all
  try {
    rung_.backward(kSeveralHeads, args, {}, stream);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(error.what()).find("dout has stride 0 in dimension 1"), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Both, FlashWgmmaBackward, testing::Values("flash_wgmma", "flash_wgmma_deterministic"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace syslab::attention
