// How flash_fp32 cuts ranges of tiles so that few heads still fill a GPU.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "ops/attention/fp32/plan.hpp"

namespace syslab::attention::fp32 {
namespace {

constexpr double kTileUs = 4;
constexpr double kBlockBytes = 64 * 64 * 4;

// Ranges of a causal head: block i sees i + 1 tiles.
std::vector<int> triangle(int blocks) {
  std::vector<int> lengths(static_cast<std::size_t>(blocks));
  std::iota(lengths.begin(), lengths.end(), 1);
  return lengths;
}

TEST(FlashFp32Cut, CoversTheLongestRangeWithoutAnEmptyChunk) {
  for (const int blocks : {1, 2, 7, 33, 128, 1000}) {
    for (const int heads : {1, 3, 40}) {
      const Cut found = cut(triangle(blocks), heads, kTileUs, kBlockBytes);
      EXPECT_GE(found.tiles * found.chunks, blocks) << blocks << " blocks, " << heads << " heads";
      EXPECT_LT(found.tiles * (found.chunks - 1), blocks) << blocks << " blocks, " << heads << " heads";
    }
  }
}

TEST(FlashFp32Cut, CutsOneLongHead) { EXPECT_GT(cut(triangle(128), 1, kTileUs, kBlockBytes).chunks, 2); }

TEST(FlashFp32Cut, LeavesManyHeadsWhole) {
  EXPECT_EQ(cut(triangle(128), 64, kTileUs, kBlockBytes).chunks, 1);
  EXPECT_EQ(cut(std::vector<int>(1000, 5), 4, kTileUs, kBlockBytes).chunks, 1);
}

TEST(FlashFp32Cut, LeavesAShortRangeWhole) {
  EXPECT_EQ(cut(std::vector<int>{1}, 1, kTileUs, kBlockBytes).chunks, 1);
  EXPECT_EQ(cut({}, 1, kTileUs, kBlockBytes).chunks, 1);
  EXPECT_EQ(cut(std::vector<int>{0, 0}, 1, kTileUs, kBlockBytes).chunks, 1);
}

TEST(FlashFp32Cut, DoesNotCutWhatIsDearToJoin) {
  const std::vector<int> lengths(100, 40);
  EXPECT_GT(cut(lengths, 1, kTileUs, 0).chunks, 1);
  EXPECT_EQ(cut(lengths, 1, kTileUs, 1e6).chunks, 1);
}

TEST(FlashFp32Columns, PadHeadDimToTheNextKernel) {
  for (const auto& [head_dim, columns] : {std::pair{1, 16}, {16, 16}, {17, 32}, {40, 64}, {64, 64}, {65, 128}}) {
    Problem problem;
    problem.head_dim = head_dim;
    EXPECT_EQ(columns_of(problem), columns) << head_dim;
  }
}

}  // namespace
}  // namespace syslab::attention::fp32
