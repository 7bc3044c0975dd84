// How the backward passes of flash_mma are cut into blocks: every pair of tiles that meet is somebody's step, once, and
// a small grid is cut until the GPU has work.
#include <gtest/gtest.h>

#include "ops/attention/mma/backward_plan.hpp"

namespace syslab::attention {
namespace {

constexpr int kProcessors = 132, kSharedLimit = 227 * 1024;

Problem one_head_backward(std::int64_t seq, std::int64_t head_dim, Mask mask = Mask::top_left) {
  return {.seq_q = seq, .seq_k = seq, .head_dim = head_dim, .mask = mask, .dtype = DType::bf16};
}

BackwardPlan plan_of(const Problem& problem, bool deterministic) {
  return plan_backward(problem, deterministic, kProcessors, kSharedLimit);
}

TEST(FlashMmaSteps, AreThePairsOfTilesThatHoldAVisiblePair) {
  for (const Mask mask : {Mask::none, Mask::top_left, Mask::bottom_right}) {
    for (const auto& [seq_q, seq_k] : {std::pair{1, 1}, {70, 300}, {300, 70}, {256, 256}, {129, 1}}) {
      const Problem problem{.heads_q = 2, .seq_q = seq_q, .seq_k = seq_k, .head_dim = 64, .mask = mask};
      const Seen seen = seen_by(problem);
      constexpr int kQueries = 64, kKeys = 32;
      int of_keys = 0, of_queries = 0, wanted = 0;
      for (int key = 0; key < seq_k; key += kKeys) {
        const int first = first_query_tile(seen, key, kQueries);
        of_keys += steps_of_keys(seen, key, kQueries);
        for (int row = 0; row < seq_q; row += kQueries) {
          const bool meets = problem.visible_keys(std::min(row + kQueries, seq_q) - 1) > key;
          wanted += meets;
          EXPECT_EQ(meets, row / kQueries >= first) << to_string(problem) << " key " << key << " row " << row;
        }
      }
      for (int row = 0; row < seq_q; row += kQueries) of_queries += steps_of_queries(seen, row, kQueries, kKeys);
      EXPECT_EQ(of_keys, wanted * 2) << to_string(problem);  // two query heads share the keys
      EXPECT_EQ(of_queries, wanted) << to_string(problem);
    }
  }
}

TEST(FlashMmaBackwardPlan, OneHeadIsCutUntilTheGpuHasWork) {
  for (const std::int64_t head_dim : {32, 64, 128}) {
    for (const std::int64_t seq : {1024, 2048, 4096, 8192}) {
      for (const bool deterministic : {false, true}) {
        const BackwardPlan plan = plan_of(one_head_backward(seq, head_dim), deterministic);
        EXPECT_GT(plan.keys.parts, 1) << seq << " " << head_dim;
        EXPECT_GE(plan.keys.tiles * plan.keys.parts, kProcessors / 2) << seq << " " << head_dim;
        EXPECT_EQ(plan.queries.parts > 1, deterministic) << seq << " " << head_dim;
      }
    }
  }
}

TEST(FlashMmaBackwardPlan, AGridThatFillsTheGpuIsNotCutAndHasWideTiles) {
  for (const std::int64_t head_dim : {64, 128}) {
    for (const Mask mask : {Mask::none, Mask::top_left}) {
      Problem problem = one_head_backward(2048, head_dim, mask);
      problem.batch = 8;
      problem.heads_q = problem.heads_kv = 2048 / head_dim;
      for (const bool deterministic : {false, true}) {
        const BackwardPlan plan = plan_of(problem, deterministic);
        EXPECT_EQ(plan.keys.steps, 0);
        EXPECT_EQ(plan.queries.steps, 0);
        EXPECT_EQ(kBackwardTiles[static_cast<std::size_t>(plan.tiles)].fused.keys, 128);
      }
    }
  }
}

TEST(FlashMmaBackwardPlan, DeterministicNeedsNoFp32GradientsWhereNothingIsCut) {
  Problem problem = one_head_backward(2048, 64);
  problem.batch = 8;
  problem.heads_q = problem.heads_kv = 32;
  const std::size_t rows = 8UL * 32 * 2048;
  EXPECT_EQ(plan_of(problem, true).workspace_bytes(), rows * 2 * sizeof(float));
  EXPECT_EQ(plan_of(problem, false).workspace_bytes(), rows * (2 + 64) * sizeof(float));
}

TEST(FlashMmaBackwardPlan, AGpuOfLittleSharedMemoryHasTilesForEveryHeadDim) {
  for (std::int64_t head_dim = 16; head_dim <= 256; head_dim += 8) {
    const BackwardPlan plan = plan_backward(one_head_backward(4096, head_dim), true, 48, kPortableShared);
    const BackwardTiles& tiles = kBackwardTiles[static_cast<std::size_t>(plan.tiles)];
    EXPECT_LE(tiles.shared_bytes, kPortableShared);
    EXPECT_GE(tiles.head_dim, head_dim);
    EXPECT_LT(tiles.head_dim, std::max<std::int64_t>(2 * head_dim, 33));
  }
}

TEST(FlashMmaBackwardPlan, WorkspaceGrowsWithTheSequenceNotWithItsSquare) {
  for (const bool deterministic : {false, true}) {
    const auto bytes = [&](std::int64_t seq) {
      return static_cast<double>(plan_of(one_head_backward(seq, 128), deterministic).workspace_bytes());
    };
    // At most eight parts of dQ, dK and dV, and the statistics.
    for (const std::int64_t seq : {1024, 4096, 16384, 65536}) {
      EXPECT_LE(bytes(seq), static_cast<double>(seq) * 128 * 4 * 3 * 8.5) << seq;
    }
  }
}

// A caller lends what it was told to before anybody asked the GPU.
TEST(FlashMmaBackwardPlan, OfAnyGpuNeedsNoMoreThanWasLentIfThatWasWhatItAskedFor) {
  int followed_another = 0;
  for (const int multiprocessors : {46, 78, 108, 132, 144}) {
    for (const int shared_limit : {kPortableShared, 163 * 1024, kTypicalShared}) {
      for (const std::int64_t head_dim : {32, 64, 128, 256}) {
        for (const std::int64_t seq : {100, 1024, 8192}) {
          for (const bool deterministic : {false, true}) {
            const Problem problem = one_head_backward(seq, head_dim);
            SCOPED_TRACE(to_string(problem) + " on " + std::to_string(multiprocessors));
            const std::size_t lent = backward_bytes_to_lend(problem, deterministic);
            const BackwardPlan own = plan_backward(problem, deterministic, multiprocessors, shared_limit);
            const BackwardPlan plan =
                backward_plan_for_lent(problem, deterministic, multiprocessors, shared_limit, lent);
            EXPECT_LE(plan.workspace_bytes(), lent);
            EXPECT_LE(kBackwardTiles[static_cast<std::size_t>(plan.tiles)].shared_bytes, shared_limit);
            if (own.workspace_bytes() <= lent) {
              EXPECT_EQ(plan.workspace_bytes(), own.workspace_bytes());
              EXPECT_EQ(plan.predicted_us, own.predicted_us);
            } else {
              ++followed_another;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(followed_another, 0) << "nothing was tested: choose problems whose plans differ";
}

TEST(FlashMmaBackwardPlan, RefusesSequencesThatTheKernelsDoNotTake) {
  for (const std::int64_t seq : {std::int64_t{1} << 29, std::int64_t{1} << 31}) {
    for (const auto& [seq_q, seq_k] : {std::pair{seq, std::int64_t{1}}, {std::int64_t{1}, seq}}) {
      const Problem problem{.seq_q = seq_q, .seq_k = seq_k, .head_dim = 64, .dtype = DType::bf16};
      EXPECT_THROW(plan_of(problem, true), Error);
      EXPECT_THROW(backward_bytes_to_lend(problem, false), Error);
    }
  }
}

}  // namespace
}  // namespace syslab::attention
