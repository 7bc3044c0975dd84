// What flash_wgmma's forward pass promises beyond what every rung does (gpu_attention_rungs_test.cpp): every tile with
// lengths around its edges, several items a block, graphs, and what it refuses.
#include <fmt/format.h>

#include <tuple>

#include "device/cuda/graph.hpp"
#include "device/cuda/kernel_watch.hpp"
#include "device/properties.hpp"
#include "ops/attention/wgmma/plan.hpp"
#include "tests/ops/gpu_flash_wgmma_fixture.hpp"

namespace syslab::attention {
namespace {

class FlashWgmmaForward : public FlashWgmmaTest {
 protected:
  FlashWgmmaForward() : FlashWgmmaTest("flash_wgmma") {}

  void expect_right(Problem problem, float scale = 1.0F, Layout layout = Layout::heads_outer) {
    for (const DType dtype : rung_.dtypes) {
      problem.dtype = dtype;
      ASSERT_EQ(rung_.supports(problem, Pass::forward), std::nullopt);
      SCOPED_TRACE(fmt::format("{}, inputs × {}", to_string(problem), scale));
      Tensors tensors(problem, ++seed_, scale, layout);
      ForwardThere(tensors, stream).run(rung_);
      tensors.check_forward();
    }
  }

  wgmma::ForwardPlan plan_of(const Problem& problem) {
    return wgmma::plan_forward(problem, device::properties(device::place_of(stream)).multiprocessors);
  }

  void expect_right_when_split(const Problem& problem, Layout layout = Layout::heads_outer) {
    SCOPED_TRACE(to_string(problem));
    ASSERT_GT(plan_of(problem).splits, 1);
    Tensors tensors(problem, ++seed_, 1.0F, layout);
    const device::Buffer lent = to_gpu(std::vector<char>(rung_.workspace_bytes(problem, Pass::forward), '\xff'));
    ForwardThere(tensors, stream).run(rung_, {lent.data(), lent.bytes()});
    tensors.check_forward();
  }

  std::uint64_t seed_ = 7000;
  static constexpr Problem kSplit{
      .seq_q = 1500, .seq_k = 1500, .head_dim = 64, .mask = Mask::top_left, .dtype = DType::bf16};
  static constexpr Problem kSeveralItems{.batch = 4,
                                         .heads_q = 16,
                                         .heads_kv = 4,
                                         .seq_q = 700,
                                         .seq_k = 700,
                                         .head_dim = 64,
                                         .mask = Mask::top_left,
                                         .dtype = DType::bf16};
};

TEST_F(FlashWgmmaForward, IsRightAroundTheEdgesOfEveryTile) {
  for (const std::int64_t head_dim : {64, 96, 128, 192, 256}) {
    for (const Mask mask : {Mask::none, Mask::top_left, Mask::bottom_right}) {
      for (const auto& [seq_q, seq_k] :
           {std::pair{1, 1}, {63, 65}, {64, 80}, {65, 97}, {128, 128}, {129, 177}, {191, 353}, {193, 95}, {257, 129}}) {
        expect_right({.heads_q = 2, .heads_kv = 1, .seq_q = seq_q, .seq_k = seq_k, .head_dim = head_dim, .mask = mask});
      }
    }
  }
}

TEST_F(FlashWgmmaForward, IsRightWithTheTileForManyKeys) {
  for (const std::int64_t seq_k : {4096, 4225}) {
    expect_right({.heads_q = 2, .heads_kv = 1, .seq_q = 131, .seq_k = seq_k, .head_dim = 128});
  }
}

TEST_F(FlashWgmmaForward, IsRightWithTheTileForLongRows) {  // at 64, shorter causal ones have another
  expect_right({.heads_q = 2, .heads_kv = 1, .seq_q = 190, .seq_k = 1500, .head_dim = 64, .mask = Mask::bottom_right});
  expect_right({.heads_q = 2, .heads_kv = 1, .seq_q = 1100, .seq_k = 1100, .head_dim = 64, .mask = Mask::top_left});
}

TEST_F(FlashWgmmaForward, IsRightAtEveryHeadDim) {
  for (std::int64_t head_dim = 8; head_dim <= 256; head_dim += 8) {
    expect_right({.heads_q = 2, .heads_kv = 1, .seq_q = 97, .seq_k = 150, .head_dim = head_dim, .mask = Mask::top_left},
                 1.0F, Layout::heads_inner);
  }
}

TEST_F(FlashWgmmaForward, IsRightWhereABlockDoesSeveralItems) {
  for (const Mask mask : {Mask::none, Mask::top_left, Mask::bottom_right}) {
    Problem problem = kSeveralItems;
    problem.mask = mask;
    expect_right(problem);
  }
}

// Many short items under a mask, which have small blocks, three a multiprocessor: with tails, and with a counter lent
// or not.
TEST_F(FlashWgmmaForward, IsRightWithTheTileForManyShortRows) {
  for (const Mask mask : {Mask::top_left, Mask::bottom_right}) {
    Problem problem{
        .batch = 4, .heads_q = 64, .heads_kv = 16, .seq_q = 250, .seq_k = 263, .head_dim = 64, .mask = mask};
    for (const DType dtype : rung_.dtypes) {
      problem.dtype = dtype;
      const wgmma::ForwardPlan plan = plan_of(problem);
      ASSERT_EQ(wgmma::kForwardTiles[static_cast<std::size_t>(plan.tile)].blocks, 3) << to_string(problem);
      Tensors tensors(problem, ++seed_);
      ForwardThere there(tensors, stream);
      device::KernelWatch watch;
      there.run(rung_);
      tensors.check_forward();
      ASSERT_EQ(watch.seen().size(), 1U);
      EXPECT_EQ(watch.seen().front().blocks, 3) << "as many as its registers and shared memory are meant for";
      EXPECT_EQ(watch.seen().front().local_bytes, 0);
      const std::vector<double> alone = to_doubles(tensors.out().view());
      tensors.poison();
      const device::Buffer lent = to_gpu(std::vector<char>(rung_.workspace_bytes(problem, Pass::forward), 'x'));
      there.run(rung_, {lent.data(), lent.bytes()});
      EXPECT_EQ(to_doubles(tensors.out().view()), alone);
    }
  }
}

// Few and uneven items, which are drawn from a counter where memory for one is lent.
TEST_F(FlashWgmmaForward, IsRightWithACounterAndWithout) {
  const Problem problem{.heads_q = 12,
                        .heads_kv = 12,
                        .seq_q = 2500,
                        .seq_k = 2500,
                        .head_dim = 64,
                        .mask = Mask::top_left,
                        .dtype = DType::bf16};
  ASSERT_TRUE(wgmma::plan_forward(problem, device::properties(device::place_of(stream)).multiprocessors).drawn);
  const device::Buffer lent = to_gpu(std::vector<char>(rung_.workspace_bytes(problem, Pass::forward) + 1, 'x'));
  Tensors tensors(problem, 14);
  ForwardThere there(tensors, stream);
  there.run(rung_, {static_cast<char*>(lent.data()) + 1, lent.bytes() - 1});
  tensors.check_forward();
  const std::vector<double> with_counter = to_doubles(tensors.out().view());
  tensors.poison();
  there.run(rung_);
  EXPECT_EQ(to_doubles(tensors.out().view()), with_counter);
}

// Keys of few rows are split among blocks, where memory for their results is lent: of every tile, with lengths around
// the ends of a split, and memory full of NaN, so that what is read has been written.
TEST_F(FlashWgmmaForward, IsRightAroundTheEndsOfSplitKeys) {
  for (const auto& [head_dim, seq_q, seq_k, mask] :
       {std::tuple{64, 1, 4000, Mask::none}, std::tuple{64, 1500, 1500, Mask::top_left},
        std::tuple{64, 130, 2900, Mask::none}, std::tuple{64, 2600, 2600, Mask::bottom_right},
        std::tuple{72, 700, 1100, Mask::top_left}, std::tuple{96, 129, 3000, Mask::none},
        std::tuple{128, 700, 1400, Mask::top_left}, std::tuple{128, 65, 9000, Mask::none},
        std::tuple{192, 300, 1700, Mask::none}, std::tuple{200, 500, 900, Mask::bottom_right},
        std::tuple{256, 800, 1300, Mask::top_left}, std::tuple{256, 1, 2500, Mask::none},
        std::tuple{8, 900, 1700, Mask::bottom_right}}) {
    Problem problem{.heads_q = 2, .heads_kv = 1, .seq_q = seq_q, .seq_k = seq_k, .head_dim = head_dim, .mask = mask};
    problem.dtype = DType::bf16;
    const wgmma::ForwardPlan plan = plan_of(problem);
    ASSERT_GT(plan.splits, 1) << to_string(problem);
    const std::int64_t ends =
        (plan.splits - 1) * plan.blocks_of_split * wgmma::kForwardTiles[static_cast<std::size_t>(plan.tile)].keys;
    for (const std::int64_t keys : {ends, ends + 1, ends + 63}) {
      problem.seq_k = keys;
      expect_right_when_split(problem, Layout::heads_inner);
    }
    problem.seq_k = seq_k;
    expect_right_when_split(problem, Layout::heads_outer);
  }
}

TEST_F(FlashWgmmaForward, ARowOfSplitKeysThatSeesNoneIsZeroAndMinusInfinity) {
  expect_right_when_split(
      {.seq_q = 3000, .seq_k = 1500, .head_dim = 64, .mask = Mask::bottom_right, .dtype = DType::bf16});
}

TEST_F(FlashWgmmaForward, TakesMemoryOfItsOwnForPartialResultsThatDoNotFit) {
  const std::size_t needed = rung_.workspace_bytes(kSplit, Pass::forward);
  const std::vector<char> pattern(needed / 2, 'x');
  const device::Buffer small = to_gpu(pattern);
  Tensors tensors(kSplit, 15);
  ForwardThere there(tensors, stream);
  for (const ops::Workspace& lent : {ops::Workspace{}, ops::Workspace{small.data(), small.bytes()}}) {
    tensors.poison();
    there.run(rung_, lent);
    tensors.check_forward();
  }
  EXPECT_EQ(to_host<char>(small), pattern);
}

TEST_F(FlashWgmmaForward, SplitKeysGiveTheSameBitsEveryTimeAndInAGraph) {
  ASSERT_GT(plan_of(kSplit).splits, 1);
  Tensors tensors(kSplit, 16);
  ForwardThere there(tensors, stream);
  const device::Buffer lent = to_gpu(std::vector<char>(rung_.workspace_bytes(kSplit, Pass::forward) + 4, '\xff'));
  const ops::Workspace odd{static_cast<char*>(lent.data()) + 4, lent.bytes() - 4};
  there.run(rung_, odd);
  tensors.check_forward();
  const std::vector<double> first = to_doubles(tensors.out().view());
  for (int run = 0; run < 30; ++run) {
    there.run(rung_, odd);
    ASSERT_EQ(to_doubles(tensors.out().view()), first) << "run " << run;
  }
  const auto captured = device::capture(stream, [&] { rung_.forward(kSplit, there.args(), odd, stream); });
  ASSERT_TRUE(captured.graph) << captured.why;
  for (int replay = 0; replay < 5; ++replay) captured.graph->replay(stream);
  there.bring_back();
  EXPECT_EQ(to_doubles(tensors.out().view()), first);
}

TEST_F(FlashWgmmaForward, KernelsKeepNothingInMemoryAndFillAMultiprocessor) {
  Tensors tensors(kSplit, 17);
  ForwardThere there(tensors, stream);
  device::KernelWatch watch;
  for (int run = 0; run < 2; ++run) there.run(rung_);
  ASSERT_EQ(watch.seen().size(), 2U) << "the kernel and the one that puts its parts together, each told of once";
  const device::KernelResources& kernel = watch.seen().front();
  EXPECT_EQ(kernel.name, "flash_wgmma forward");
  EXPECT_EQ(kernel.local_bytes, 0);
  EXPECT_EQ(kernel.blocks, 1);
  EXPECT_EQ(kernel.threads * kernel.registers / 1024, 63) << "of 64 Ki registers";
  EXPECT_GT(kernel.shared_bytes, 90 * 1024);
  EXPECT_EQ(kernel.most_threads, 2048);
  EXPECT_EQ(watch.seen().back().name, "flash combine");
}

TEST_F(FlashWgmmaForward, ARowThatSeesNoKeyIsZeroAndMinusInfinity) {
  // The oracle says so, and its bound at −∞ is nothing.
  expect_right({.heads_q = 3, .heads_kv = 3, .seq_q = 500, .seq_k = 70, .head_dim = 64, .mask = Mask::bottom_right});
}

TEST_F(FlashWgmmaForward, IsRightWithPeakedWeightsAndANegativeScale) {
  for (const float scale : {0.0F, -0.2F, 1.0F}) {
    for (const Mask mask : {Mask::none, Mask::top_left}) {
      expect_right(
          {.heads_q = 2, .heads_kv = 2, .seq_q = 300, .seq_k = 300, .head_dim = 64, .scale = scale, .mask = mask},
          3.0F);
    }
  }
}

TEST_F(FlashWgmmaForward, GivesTheSameBitsEveryTime) {
  Tensors tensors(kSeveralItems, 7);
  ForwardThere there(tensors, stream);
  there.run(rung_);
  const std::vector<double> first = to_doubles(tensors.out().view());
  for (int run = 0; run < 30; ++run) {
    there.run(rung_);
    ASSERT_EQ(to_doubles(tensors.out().view()), first) << "run " << run;
  }
}

TEST_F(FlashWgmmaForward, CanBeRecordedInAGraph) {
  Tensors tensors(kSeveralItems, 10);
  ForwardThere there(tensors, stream);
  const device::Buffer lent = to_gpu(std::vector<char>(rung_.workspace_bytes(kSeveralItems, Pass::forward)));
  const auto call = [&] { rung_.forward(kSeveralItems, there.args(), {lent.data(), lent.bytes()}, stream); };
  call();
  device::synchronize(stream);
  const auto captured = device::capture(stream, call);
  ASSERT_TRUE(captured.graph) << captured.why;
  for (int replay = 0; replay < 5; ++replay) captured.graph->replay(stream);
  there.bring_back();
  tensors.check_forward();
}

TEST_F(FlashWgmmaForward, RefusesRowsThatTheCopyEngineCannotWalk) {
  const Problem problem{.heads_q = 2, .heads_kv = 2, .seq_q = 64, .seq_k = 64, .head_dim = 64, .dtype = DType::f16};
  Tensors padded(problem, 11, 1.0F, Layout::padded);  // rows of 69 elements
  EXPECT_THROW(ForwardThere(padded, stream).run(rung_), Error);
  Tensors tensors(problem, 12);
  ForwardThere there(tensors, stream);
  ForwardArgs args = there.args();
  args.k.strides[1] = 0;  // one head for all
  try {
    rung_.forward(problem, args, {}, stream);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(error.what()).find("k has stride 0 in dimension 1"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace syslab::attention
