// What flash_mma's forward pass promises beyond what every rung does (gpu_attention_rungs_test.cpp): splits of the
// keys, a maximum that is raised late, graphs, workspaces, and what it refuses.
#include <fmt/format.h>

#include <cmath>

#include "device/cuda/graph.hpp"
#include "tests/ops/gpu_attention_fixture.hpp"

namespace syslab::attention {
namespace {

class FlashMmaForward : public device::GpuTest {
 protected:
  void expect_right(Problem problem, float scale = 1.0F) {
    for (const DType dtype : rung_.dtypes) {
      problem.dtype = dtype;
      ASSERT_EQ(rung_.supports(problem, Pass::forward), std::nullopt);
      SCOPED_TRACE(fmt::format("{}, inputs × {}", to_string(problem), scale));
      Tensors tensors(problem, ++seed_, scale);
      ForwardThere(tensors, stream).run(rung_);
      tensors.check_forward();
    }
  }

  const Rung& rung_ = find_rung("flash_mma");
  std::uint64_t seed_ = 4000;
  static constexpr Problem kSplit{
      .seq_q = 1500, .seq_k = 1500, .head_dim = 64, .mask = Mask::top_left, .dtype = DType::bf16};
};

TEST_F(FlashMmaForward, IsRightAtTileEdgesPrimesAndLengthOne) {
  for (const Mask mask : {Mask::none, Mask::top_left, Mask::bottom_right}) {
    for (const std::int64_t seq_q : {1, 63, 64, 65, 131}) {
      for (const std::int64_t seq_k : {1, 31, 64, 67, 129}) {
        expect_right({.heads_q = 2, .heads_kv = 2, .seq_q = seq_q, .seq_k = seq_k, .head_dim = 64, .mask = mask});
      }
    }
  }
}

TEST_F(FlashMmaForward, IsRightAtEveryHeadDim) {
  for (std::int64_t head_dim = 16; head_dim <= 256; head_dim += 8) {
    expect_right(
        {.heads_q = 2, .heads_kv = 1, .seq_q = 97, .seq_k = 150, .head_dim = head_dim, .mask = Mask::top_left});
  }
}

TEST_F(FlashMmaForward, IsRightWhenKeysAreSplit) {
  for (const std::int64_t head_dim : {16, 64, 128, 256}) {
    for (const Mask mask : {Mask::none, Mask::top_left, Mask::bottom_right}) {
      expect_right({.seq_q = 700, .seq_k = 1100, .head_dim = head_dim, .mask = mask});
      expect_right({.seq_q = 1, .seq_k = 4099, .head_dim = head_dim, .mask = mask});
    }
  }
}

TEST_F(FlashMmaForward, ARowThatSeesNoKeyIsZeroAndMinusInfinity) {
  // The oracle says so, and its bound at −∞ is nothing.
  expect_right({.heads_q = 3, .heads_kv = 3, .seq_q = 200, .seq_k = 70, .head_dim = 64, .mask = Mask::bottom_right});
  expect_right({.seq_q = 3000, .seq_k = 1500, .head_dim = 64, .mask = Mask::bottom_right});
}

TEST_F(FlashMmaForward, IsRightWithPeakedWeightsAndANegativeScale) {
  for (const float scale : {0.0F, -0.2F, 1.0F}) {
    for (const Mask mask : {Mask::none, Mask::top_left}) {
      expect_right(
          {.heads_q = 2, .heads_kv = 2, .seq_q = 300, .seq_k = 300, .head_dim = 64, .scale = scale, .mask = mask},
          3.0F);
    }
  }
}

// The maximum that flash_mma weighs with is the first tile's until a weight is far too large: keys that grow make that
// happen again and again.
TEST_F(FlashMmaForward, IsRightWhenScoresGrowAlongTheKeys) {
  for (const std::int64_t head_dim : {32, 64, 128, 256}) {
    for (const DType dtype : {DType::bf16, DType::f16}) {
      const Problem problem{
          .heads_q = 2, .heads_kv = 2, .seq_q = 130, .seq_k = 2000, .head_dim = head_dim, .dtype = dtype};
      Tensors tensors(problem, ++seed_);
      const TensorView k = tensors.k().view();
      const std::vector<double> values = to_doubles(k);
      std::vector<double> grown = values;
      for (std::size_t n = 0; n < grown.size(); ++n) {
        const auto key = static_cast<double>(static_cast<std::int64_t>(n) / head_dim % problem.seq_k);
        grown[n] *= 0.02 * key;
      }
      Tensors::store(k, grown);
      ForwardThere(tensors, stream).run(rung_);
      tensors.check_forward();
    }
  }
}

TEST_F(FlashMmaForward, GivesTheSameBitsEveryTime) {
  Tensors tensors(kSplit, 7);
  ForwardThere there(tensors, stream);
  there.run(rung_);
  const std::vector<double> first = to_doubles(tensors.out().view());
  for (int run = 0; run < 30; ++run) {
    there.run(rung_);
    ASSERT_EQ(to_doubles(tensors.out().view()), first) << "run " << run;
  }
}

TEST_F(FlashMmaForward, TakesItsOwnMemoryWhenTheWorkspaceIsTooSmall) {
  const std::size_t needed = rung_.workspace_bytes(kSplit, Pass::forward);
  ASSERT_GT(needed, 0U);
  const std::vector<char> pattern(needed / 2, 'x');
  const device::Buffer small = to_gpu(pattern);
  Tensors tensors(kSplit, 8);
  ForwardThere(tensors, stream).run(rung_, {small.data(), small.bytes()});
  tensors.check_forward();
  EXPECT_EQ(to_host<char>(small), pattern);
}

TEST_F(FlashMmaForward, IsRightOnALentWorkspaceAtAnOddAddress) {
  const device::Buffer lent = to_gpu(std::vector<char>(rung_.workspace_bytes(kSplit, Pass::forward) + 4));
  Tensors tensors(kSplit, 9);
  ForwardThere(tensors, stream).run(rung_, {static_cast<char*>(lent.data()) + 4, lent.bytes() - 4});
  tensors.check_forward();
}

TEST_F(FlashMmaForward, CanBeRecordedInAGraph) {
  Tensors tensors(kSplit, 10);
  ForwardThere there(tensors, stream);
  const device::Buffer lent = to_gpu(std::vector<char>(rung_.workspace_bytes(kSplit, Pass::forward)));
  const auto call = [&] { rung_.forward(kSplit, there.args(), {lent.data(), lent.bytes()}, stream); };
  call();
  device::synchronize(stream);
  const auto captured = device::capture(stream, call);
  ASSERT_TRUE(captured.graph) << captured.why;
  for (int replay = 0; replay < 5; ++replay) captured.graph->replay(stream);
  there.bring_back();
  tensors.check_forward();
}

TEST_F(FlashMmaForward, RefusesRowsThatAreNotAligned) {
  const Problem problem{.seq_q = 64, .seq_k = 64, .head_dim = 64, .dtype = DType::f16};
  Tensors padded(problem, 11, 1.0F, Layout::padded);  // rows of 69 elements
  try {
    ForwardThere(padded, stream).run(rung_);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(error.what()).find("q has stride 69 in dimension 2"), std::string::npos) << error.what();
  }
  Tensors tensors(problem, 12);
  ForwardThere there(tensors, stream);
  ForwardArgs args = there.args();
  args.v.data = static_cast<const char*>(args.v.data) + 8;
  EXPECT_THROW(rung_.forward(problem, args, {}, stream), Error);
  EXPECT_THROW(rung_.forward(problem, there.args(), {}, {}), Error) << "a stream of the CPU";
}

}  // namespace
}  // namespace syslab::attention
