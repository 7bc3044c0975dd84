// Which tile flash_wgmma gives a problem, in which order its items go, and whether blocks stay for several of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "ops/attention/wgmma/plan.hpp"

namespace syslab::attention::wgmma {
namespace {

constexpr int kMultiprocessors = 132;

const ForwardTileShape& shape_of(const ForwardPlan& plan) { return kForwardTiles[static_cast<std::size_t>(plan.tile)]; }

Problem heads_of(std::int64_t heads, std::int64_t seq, std::int64_t head_dim, Mask mask) {
  return {.heads_q = heads,
          .heads_kv = heads,
          .seq_q = seq,
          .seq_k = seq,
          .head_dim = head_dim,
          .mask = mask,
          .dtype = DType::bf16};
}

TEST(FlashWgmmaPlan, PadsHeadDimToTheNextTile) {
  for (const auto& [head_dim, padded] : {std::pair{8, 64}, {64, 64}, {72, 96}, {104, 128}, {136, 192}, {256, 256}}) {
    for (const Mask mask : {Mask::none, Mask::top_left}) {
      EXPECT_EQ(shape_of(wgmma::plan_forward(heads_of(2, 512, head_dim, mask), kMultiprocessors)).head_dim, padded);
    }
  }
}

TEST(FlashWgmmaPlan, MeetsMoreKeysAtATimeWhereThereAreManyAndNoneAreHidden) {
  const auto keys = [](std::int64_t seq, Mask mask) {
    return shape_of(wgmma::plan_forward(heads_of(2, seq, 128, mask), kMultiprocessors)).keys;
  };
  EXPECT_EQ(keys(8192, Mask::top_left), 128);
  EXPECT_EQ(keys(8192, Mask::none), 176);
  EXPECT_EQ(keys(1024, Mask::none), 128);
}

TEST(FlashWgmmaPlan, HasFewerRowsWhereAMaskLeavesFewKeys) {
  const auto rows = [](std::int64_t seq, Mask mask) {
    return shape_of(wgmma::plan_forward(heads_of(16, seq, 64, mask), kMultiprocessors)).rows();
  };
  EXPECT_EQ(rows(1024, Mask::top_left), 128);
  EXPECT_EQ(rows(1024, Mask::none), 192);
  EXPECT_EQ(rows(4096, Mask::none), 192);
  EXPECT_EQ(rows(2048, Mask::bottom_right), 192);
}

TEST(FlashWgmmaPlan, ManyShortRowsUnderAMaskHaveSmallBlocksThreeAMultiprocessor) {
  const auto plan = [](std::int64_t heads, std::int64_t seq, Mask mask) {
    return wgmma::plan_forward(heads_of(heads, seq, 64, mask), kMultiprocessors);
  };
  const ForwardPlan many = plan(1024, 512, Mask::top_left);
  EXPECT_EQ(shape_of(many).rows(), 64);
  EXPECT_EQ(shape_of(many).keys, 64);
  EXPECT_EQ(many.grid, 3 * kMultiprocessors);
  EXPECT_EQ(many.section_heads, 32) << "of eight blocks of rows each, for 396 blocks";
  EXPECT_EQ(many.splits, 1);
  EXPECT_EQ(shape_of(plan(124, 512, Mask::top_left)).rows(), 64) << "992 items, 2.5 for each of 396 blocks";
  EXPECT_EQ(shape_of(plan(123, 512, Mask::top_left)).rows(), 128);
  EXPECT_EQ(shape_of(plan(1024, 512, Mask::none)).rows(), 192);
  EXPECT_EQ(shape_of(plan(1024, 1025, Mask::top_left)).rows(), 192);
  Problem more_queries = heads_of(1024, 512, 64, Mask::top_left);
  more_queries.seq_q = 1025;  // most of them see every key
  EXPECT_EQ(shape_of(wgmma::plan_forward(more_queries, kMultiprocessors)).rows(), 128);
}

TEST(FlashWgmmaPlan, BackwardPadsHeadDimAndEndsAt256) {
  for (const auto& [head_dim, padded] :
       {std::pair{8, 64}, {64, 64}, {72, 128}, {128, 128}, {136, 192}, {192, 192}, {200, 256}, {256, 256}}) {
    const int tile = backward_tile_of(heads_of(2, 512, head_dim, Mask::none));
    ASSERT_GE(tile, 0);
    EXPECT_EQ(kBackwardTiles[static_cast<std::size_t>(tile)].head_dim, padded);
  }
  EXPECT_EQ(backward_tile_of(heads_of(2, 512, 264, Mask::none)), -1);
}

TEST(FlashWgmmaPlan, HeadsBeginInTurnSoThatABlocksTurnHasCome) {
  EXPECT_EQ(backward_section(heads_of(64, 1024, 64, Mask::none), kMultiprocessors), 16);  // 16 steps a block
  EXPECT_EQ(backward_section(heads_of(64, 16384, 64, Mask::none), kMultiprocessors), 1);
  EXPECT_EQ(backward_section(heads_of(4, 64, 64, Mask::none), kMultiprocessors), 4) << "no more than there are";
  Problem shared = heads_of(64, 1024, 64, Mask::none);
  shared.heads_kv = 16;  // four heads' steps a block
  EXPECT_EQ(backward_section(shared, kMultiprocessors), 4);
}

// What the kernel asserts of each tile of its own, for all at once and without a compiler of CUDA.
TEST(FlashWgmmaPlan, TilesFitRegistersAndSharedMemory) {
  for (const ForwardTileShape& tile : kForwardTiles) {
    EXPECT_LE(tile.blocks * 2 * tile.head_dim * (tile.rows() + 4 * tile.keys), 227 * 1024)
        << tile.head_dim << " × " << tile.keys;
    EXPECT_LE(tile.keys * 3 / 4 + tile.head_dim / 2, tile.groups == 1   ? 104
                                                     : tile.groups == 2 ? 212
                                                                        : 128)
        << tile.head_dim << " × " << tile.keys;
  }
  for (const BackwardTileShape& tile : kBackwardTiles) {
    SCOPED_TRACE(tile.head_dim);
    if (!tile.groups_by_product) continue;
    EXPECT_LE(tile.shared_bytes(), 227 * 1024);
    // Beside what is summed up, scores and their packed form: what a group needed in every compile so far.
    EXPECT_LE(tile.head_dim / 2 + 32 + 16 + 32, tile.sum_registers());
    EXPECT_EQ(tile.sum_registers() % 8, 0);
    EXPECT_GE(tile.dq_registers(), tile.dq_columns() / 2 + 32);
    EXPECT_EQ(tile.head_dim % tile.dq_columns(), 0);
    EXPECT_EQ(tile.dq_columns() % 64, 0) << "a product across rows begins where a panel of 64 columns does";
  }
}

TEST(FlashWgmmaPlan, ItemsMeetEveryKeyThatARowSees) {
  for (const Mask mask : {Mask::none, Mask::top_left, Mask::bottom_right}) {
    for (const std::int64_t seq_q : {1, 127, 129, 1000}) {
      for (const std::int64_t seq_k : {1, 100, 129, 3000}) {
        Problem problem = heads_of(6, seq_q, 128, mask);
        problem.seq_k = seq_k;
        problem.batch = 3;
        const ForwardPlan plan = plan_whole(problem, kMultiprocessors);
        SCOPED_TRACE(to_string(problem));
        EXPECT_GE(plan.row_blocks * shape_of(plan).rows(), seq_q);
        EXPECT_LT((plan.row_blocks - 1) * shape_of(plan).rows(), seq_q);
        const std::vector<int> lengths = lengths_of_items(problem, plan);
        ASSERT_EQ(static_cast<std::int64_t>(lengths.size()), plan.items);
        EXPECT_EQ(plan.items, 18 * plan.row_blocks);
        const std::int64_t met = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}) *
                                 shape_of(plan).rows() * shape_of(plan).keys;
        EXPECT_GE(met, 18 * problem.visible_pairs());
        EXPECT_EQ(*std::max_element(lengths.begin(), lengths.end()),
                  (problem.visible_keys(seq_q - 1) + shape_of(plan).keys - 1) / shape_of(plan).keys);
      }
    }
  }
}

TEST(FlashWgmmaPlan, TheLongestOfASectionComeFirst) {
  const Problem problem = heads_of(16, 16384, 128, Mask::top_left);  // 8 MiB of keys and values a head
  const ForwardPlan plan = wgmma::plan_forward(problem, kMultiprocessors);
  EXPECT_EQ(plan.section_heads, 4);
  const std::vector<int> lengths = lengths_of_items(problem, plan);
  const auto section = static_cast<std::ptrdiff_t>(plan.section_heads * plan.row_blocks);
  for (auto at = lengths.begin(); at != lengths.end(); at += section) {
    EXPECT_TRUE(std::is_sorted(at, at + section, std::greater<>()));
  }
  Problem grouped = problem;
  grouped.heads_kv = 4;
  EXPECT_EQ(wgmma::plan_forward(grouped, kMultiprocessors).section_heads, 16) << "four heads share keys and values";
}

TEST(FlashWgmmaPlan, HeadsOfShortRowsGoTogetherAsFarAsTheyHaveAnItemForEachMultiprocessor) {
  const auto section = [](std::int64_t seq, int multiprocessors) {
    return wgmma::plan_forward(heads_of(512, seq, 128, Mask::top_left), multiprocessors).section_heads;
  };
  EXPECT_EQ(section(512, 132), 32) << "of four blocks of rows each";
  EXPECT_EQ(section(1024, 132), 16);
  EXPECT_EQ(section(1024, 64), 8);
  EXPECT_EQ(section(1024, 1), 1);
  EXPECT_EQ(section(2048, 132), 32) << "longer ones: as many as have keys and values for 32 MiB";
}

TEST(FlashWgmmaPlan, SplitsKeysWhereBlocksOfRowsAreTooFewOrTooUneven) {
  const auto splits = [](std::int64_t heads, std::int64_t seq, std::int64_t head_dim, Mask mask) {
    return wgmma::plan_forward(heads_of(heads, seq, head_dim, mask), kMultiprocessors).splits;
  };
  EXPECT_GT(splits(1, 16384, 64, Mask::top_left), 1) << "86 blocks of rows, the last 128 blocks of keys long";
  EXPECT_GT(splits(1, 4096, 128, Mask::none), 1) << "32 blocks of rows";
  EXPECT_EQ(splits(1, 65536, 64, Mask::top_left), 1) << "342 blocks of rows";
  EXPECT_EQ(splits(32, 4096, 64, Mask::none), 1);
  EXPECT_EQ(splits(1, 128, 64, Mask::none), 1) << "one block of keys";
  Problem one_row = heads_of(8, 1, 128, Mask::none);
  one_row.seq_k = 20000;
  EXPECT_GT(wgmma::plan_forward(one_row, kMultiprocessors).splits, 8);
}

// Every key that the last row of a block sees is met in one split of it, and a block has no empty ones.
TEST(FlashWgmmaPlan, SplitsMeetEveryKeyOnce) {
  for (const Mask mask : {Mask::none, Mask::top_left, Mask::bottom_right}) {
    for (const auto& [seq_q, seq_k] : {std::pair{1, 3000}, {500, 3000}, {3000, 3000}, {3000, 500}, {1283, 1281}}) {
      Problem problem = heads_of(3, seq_q, 128, mask);
      problem.seq_k = seq_k;
      for (const std::int64_t blocks : {1, 2, 3}) {
        const ForwardPlan split = plan_split(problem, 4, blocks, kMultiprocessors);
        SCOPED_TRACE(to_string(problem) + ", " + std::to_string(blocks));
        EXPECT_EQ(split.splits, (problem.visible_keys(seq_q - 1) + 128 * blocks - 1) / (128 * blocks));
        const std::vector<int> lengths = lengths_of_items(problem, split);
        ASSERT_EQ(static_cast<std::int64_t>(lengths.size()), split.items);
        EXPECT_EQ(split.items, 3 * split.items_of_head);
        ForwardPlan whole = split;
        whole.splits = 1, whole.blocks_of_split = 0, whole.items_of_head = whole.row_blocks;
        whole.items = 3 * whole.row_blocks;
        const std::vector<int> rows = lengths_of_items(problem, whole);
        EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), 0), std::accumulate(rows.begin(), rows.end(), 0));
        EXPECT_LE(*std::max_element(lengths.begin(), lengths.end()), blocks);
        EXPECT_EQ(std::count(lengths.begin(), lengths.end(), 0), std::count(rows.begin(), rows.end(), 0));
      }
    }
  }
}

TEST(FlashWgmmaPlan, PartialResultsFitWhatIsLent) {
  const Problem problem = heads_of(1, 4096, 64, Mask::top_left);
  const std::size_t enough = wgmma::forward_bytes_to_lend(problem);
  const ForwardPlan split = wgmma::forward_plan_for_lent(problem, kMultiprocessors, enough);
  EXPECT_GT(split.splits, 1);
  EXPECT_EQ(split, wgmma::plan_forward(problem, kMultiprocessors));
  EXPECT_EQ(partial_bytes(problem, split), static_cast<std::size_t>(split.splits) * 4096 * (64 + 1) * sizeof(float));
  EXPECT_EQ(enough, partial_bytes(problem, split) + sizeof(unsigned));
  // A GPU with other needs takes what the typical one would, if that is all there is.
  for (const int multiprocessors : {40, 78, 114, 200}) {
    const ForwardPlan there = wgmma::forward_plan_for_lent(problem, multiprocessors, enough);
    EXPECT_LE(partial_bytes(problem, there), enough) << multiprocessors;
    EXPECT_LE(there.grid, multiprocessors);
  }
  EXPECT_EQ(wgmma::forward_bytes_to_lend(heads_of(64, 4096, 64, Mask::none)), 0U);
}

TEST(FlashWgmmaPlan, DealingThereAndBackEvensOut) {
  const int lengths[] = {8, 7, 6, 5, 4, 3, 2, 1};
  EXPECT_DOUBLE_EQ(dealt_out(lengths, 2, 0.5), 18 + 4 * 0.5);  // 8 + 5 + 4 + 1
  const int one_long[] = {9, 1, 1};
  EXPECT_DOUBLE_EQ(dealt_out(one_long, 2, 0.5), 9.5);
}

TEST(FlashWgmmaPlan, ItemsAreDrawnWhereTheyWouldBeDealtOutUnevenly) {
  EXPECT_FALSE(wgmma::plan_forward(heads_of(128, 4096, 64, Mask::none), kMultiprocessors).drawn);
  EXPECT_FALSE(wgmma::plan_forward(heads_of(12, 1000, 128, Mask::top_left), kMultiprocessors).drawn)
      << "an item a block";
  // Two heads a section, 256 items of 2 to 205 blocks of keys: a round has every other length.
  EXPECT_TRUE(wgmma::plan_forward(heads_of(8, 16384, 256, Mask::top_left), kMultiprocessors).drawn);
}

TEST(FlashWgmmaPlan, OneBlockAMultiprocessorAndNoneWithoutAnItem) {
  EXPECT_EQ(wgmma::plan_forward(heads_of(128, 4096, 64, Mask::none), kMultiprocessors).grid, kMultiprocessors);
  EXPECT_EQ(plan_whole(heads_of(1, 1000, 64, Mask::none), kMultiprocessors).grid, 6);
  const ForwardPlan split = wgmma::plan_forward(heads_of(1, 1000, 64, Mask::none), kMultiprocessors);
  EXPECT_EQ(split.grid, std::min<std::int64_t>(split.items, kMultiprocessors));
}

}  // namespace
}  // namespace syslab::attention::wgmma
