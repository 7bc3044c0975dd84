// How flash_mma divides a problem among multiprocessors: the model of the makespan and what is chosen by it.
#include <gtest/gtest.h>

#include "ops/attention/mma/plan.hpp"

namespace syslab::attention {
namespace {

constexpr int kMultiprocessors = 132;

const ForwardTileShape& shape_of(const ForwardPlan& plan) { return kForwardTiles[static_cast<std::size_t>(plan.tile)]; }

Problem one_head(std::int64_t seq, std::int64_t head_dim, Mask mask = Mask::top_left) {
  return {.seq_q = seq, .seq_k = seq, .head_dim = head_dim, .mask = mask, .dtype = DType::bf16};
}

TEST(FlashMmaMakespan, OneBlockTakesItsUnitsAlone) {
  const int units[] = {5};
  EXPECT_DOUBLE_EQ(makespan(units, 4, {0.5, 1.0, 2.0}), 10.0);
}

TEST(FlashMmaMakespan, BlocksThatShareAMultiprocessorTakeItsTimeTogetherAndEachItsOwn) {
  const int units[] = {5, 5, 5};
  EXPECT_DOUBLE_EQ(makespan(units, 1, {0.5, 1.0, 2.0}), 16.0);
}

TEST(FlashMmaMakespan, TheNextBlockGoesWhereLeastIsToDo) {
  const int longest_first[] = {4, 3, 2, 1, 1, 1}, longest_last[] = {1, 1, 1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(makespan(longest_first, 2, {0.0, 1.0, 1.0}), 6.0);
  EXPECT_DOUBLE_EQ(makespan(longest_last, 2, {0.0, 1.0, 1.0}), 7.0);
}

TEST(FlashMmaMakespan, BlocksThatFitTogetherAreDealtOutInTurn) {
  const int units[] = {4, 1, 4, 1};
  EXPECT_DOUBLE_EQ(makespan(units, 2, {0.0, 1.0, 1.0, 1}), 5.0);
  EXPECT_DOUBLE_EQ(makespan(units, 2, {0.0, 1.0, 1.0, 2}), 8.0);
}

TEST(FlashMmaMakespan, NeverBeatsTheLongestBlockNorTheSharedWork) {
  const int units[] = {9, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_DOUBLE_EQ(makespan(units, 8, {0.0, 1.0, 1.5}), 13.5);
  EXPECT_GE(makespan(units, 2, {0.0, 1.0, 0.0}), 8.0);
}

TEST(FlashMmaPlan, OneHeadIsSplitUntilTheGpuHasWork) {
  for (const std::int64_t head_dim : {32, 64, 128}) {
    for (const std::int64_t seq : {4096, 8192}) {
      const Problem problem = one_head(seq, head_dim);
      const ForwardPlan plan = plan_forward(problem, kMultiprocessors);
      EXPECT_GT(plan.splits, 1) << to_string(problem);
      const ForwardPlan whole = plan_with(problem, plan.tile, seq, kMultiprocessors);
      EXPECT_LT(plan.predicted_us, whole.predicted_us) << to_string(problem);
    }
  }
}

TEST(FlashMmaPlan, AGridThatFillsTheGpuIsNotSplit) {
  Problem problem = one_head(2048, 64);
  problem.batch = 8;
  problem.heads_q = problem.heads_kv = 32;
  EXPECT_EQ(plan_forward(problem, kMultiprocessors).splits, 1);
  problem.mask = Mask::none;
  EXPECT_EQ(plan_forward(problem, kMultiprocessors).splits, 1);
}

TEST(FlashMmaPlan, WhereRowsAloneKeepAllBusyKeysAreNotSplit) {
  EXPECT_GT(plan_forward(one_head(4096, 64), kMultiprocessors).splits, 1);
  EXPECT_EQ(plan_forward(one_head(4096, 64), 4).splits, 1);
}

TEST(FlashMmaPlan, SplitsAreWholeTilesAndCoverEveryVisibleKey) {
  for (const Mask mask : {Mask::none, Mask::top_left, Mask::bottom_right}) {
    for (const std::int64_t seq_q : {1, 63, 64, 1000, 4097}) {
      for (const std::int64_t seq_k : {1, 65, 100, 3000, 50000}) {
        const Problem problem{.seq_q = seq_q, .seq_k = seq_k, .head_dim = 64, .mask = mask, .dtype = DType::f16};
        const ForwardPlan plan = plan_forward(problem, kMultiprocessors);
        SCOPED_TRACE(to_string(problem));
        EXPECT_EQ(plan.keys_of_split % shape_of(plan).step(), 0);
        EXPECT_GE(plan.splits * plan.keys_of_split, problem.visible_keys(seq_q - 1));
        EXPECT_LT((plan.splits - 1) * plan.keys_of_split, std::max<std::int64_t>(problem.visible_keys(seq_q - 1), 1));
        EXPECT_GE(plan.row_blocks * shape_of(plan).rows(), seq_q);
        EXPECT_LE(plan.splits, 64);
      }
    }
  }
}

TEST(FlashMmaPlan, PadsHeadDimToTheNextTile) {
  for (const auto& [head_dim, padded] : {std::pair{16, 32}, {32, 32}, {40, 64}, {64, 64}, {72, 128}, {256, 256}}) {
    const ForwardPlan plan = plan_forward(one_head(512, head_dim), kMultiprocessors);
    EXPECT_EQ(shape_of(plan).head_dim, padded) << head_dim;
  }
}

TEST(FlashMmaPlan, PartialResultsAreOneOutputAndOneSumForEverySplit) {
  Problem problem = one_head(2048, 40);
  problem.batch = 2;
  problem.heads_q = 3;
  ForwardPlan plan = plan_with(problem, 4, 512, kMultiprocessors);
  EXPECT_EQ(plan.splits, 4);
  EXPECT_EQ(partial_bytes(problem, plan), 4U * 6 * 2048 * (40 + 1) * 4);
  plan = plan_with(problem, 4, 2048, kMultiprocessors);
  EXPECT_EQ(plan.splits, 1);
  EXPECT_EQ(partial_bytes(problem, plan), 0U);
}

// A caller lends what it was told to before anybody asked the GPU.
TEST(FlashMmaPlan, OfAnyGpuNeedsNoMoreThanWasLentIfThatWasWhatItAskedFor) {
  int followed_another = 0;
  for (const int multiprocessors : {46, 78, 108, 114, 132, 144, 160}) {
    for (const std::int64_t head_dim : {32, 64, 128, 256}) {
      for (const std::int64_t seq : {1, 500, 2048, 8192}) {
        for (const Mask mask : {Mask::none, Mask::top_left}) {
          const Problem problem = one_head(seq, head_dim, mask);
          const std::size_t lent = forward_bytes_to_lend(problem);
          const ForwardPlan own = plan_forward(problem, multiprocessors),
                            plan = forward_plan_for_lent(problem, multiprocessors, lent);
          EXPECT_LE(partial_bytes(problem, plan), lent) << to_string(problem) << " on " << multiprocessors;
          if (partial_bytes(problem, own) <= lent) {
            EXPECT_EQ(plan, own) << to_string(problem) << " on " << multiprocessors;
          } else {
            EXPECT_EQ(plan, plan_forward(problem, kMultiprocessors));
            EXPECT_EQ(forward_plan_for_lent(problem, multiprocessors, partial_bytes(problem, own)), own);
            ++followed_another;
          }
        }
      }
    }
  }
  EXPECT_GT(followed_another, 0) << "nothing was tested: choose problems whose plans differ";
}

TEST(FlashMmaPlan, WithoutEnoughMemoryForAnyTheGpusOwnIsFollowed) {
  const Problem problem = one_head(8192, 64);
  ASSERT_GT(forward_bytes_to_lend(problem), 100U);
  EXPECT_EQ(forward_plan_for_lent(problem, 144, 100), plan_forward(problem, 144));
}

TEST(FlashMmaPlan, RefusesSequencesThatTheKernelsDoNotTake) {
  for (const std::int64_t seq : {std::int64_t{1} << 29, std::int64_t{1} << 31}) {
    for (const auto& [seq_q, seq_k] : {std::pair{seq, std::int64_t{1}}, {std::int64_t{1}, seq}}) {
      const Problem problem{.seq_q = seq_q, .seq_k = seq_k, .head_dim = 64, .dtype = DType::bf16};
      EXPECT_THROW(plan_forward(problem, kMultiprocessors), Error);
      EXPECT_THROW(forward_bytes_to_lend(problem), Error);
    }
  }
}

}  // namespace
}  // namespace syslab::attention
