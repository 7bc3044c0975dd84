// communication_accounting (a) and (b): the numbers of the 126 blocks.
#include "paper/block_memory.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace syslab::parallel {
namespace {

constexpr BlockModel kXxl{};
constexpr std::int64_t kGB = 1'000'000'000, kGiB = 1'073'741'824;

TEST(BlockMemory, CountsParametersAndState) {
  EXPECT_EQ(parameter_count(kXxl), 219'848'638'464);
  EXPECT_EQ(parameter_count({.blocks = 1}), 1'744'830'464);
  const BlockStateBytes state = state_bytes(kXxl);
  EXPECT_EQ(state.weights, 879'394'553'856);
  EXPECT_EQ(state.gradients, state.weights);
  EXPECT_EQ(state.moments, 1'758'789'107'712);
  EXPECT_EQ(state.total(), 3'517'578'215'424);
  EXPECT_EQ(state.total() / kGiB, 3276);
  EXPECT_EQ(state.weights / kGiB, 819);
  EXPECT_EQ(state.moments / kGiB, 1638);
}

TEST(BlockMemory, CountsActivationsOfAToken) {
  EXPECT_EQ(activation_bytes_per_token({.blocks = 1}), 139'264);
  EXPECT_EQ(activation_bytes_per_token(kXxl), 17'547'264);
}

// The column of tokens, and both readings of a device's GB, in (a) and in (b).
TEST(BlockMemory, TellsHowManyDevicesHoldItAndHowManyShards) {
  const struct {
    std::int64_t tokens, devices, devices_binary, shards, shards_binary;  // -1: impossible
  } kExpected[] = {
      {0, 44, 41, 38, 35},    {512, 45, 42, 39, 37},    {1024, 45, 42, 41, 38},   {2048, 45, 42, 46, 43},
      {4096, 45, 42, 61, 54}, {8192, 46, 43, 156, 120}, {131072, 73, 68, -1, -1},
  };
  const std::int64_t state = state_bytes(kXxl).total();
  for (const auto& one : kExpected) {
    const std::int64_t activations = one.tokens * activation_bytes_per_token(kXxl);
    EXPECT_EQ(devices_for(state + activations, 80 * kGB), one.devices) << one.tokens;
    EXPECT_EQ(devices_for(state + activations, 80 * kGiB), one.devices_binary) << one.tokens;
    EXPECT_EQ(shards_for(state, activations, 95 * kGB).value_or(-1), one.shards) << one.tokens;
    EXPECT_EQ(shards_for(state, activations, 95 * kGiB).value_or(-1), one.shards_binary) << one.tokens;
  }
}

TEST(BlockMemory, TheLeastNumberOfShardsFitsAndOneLessDoesNot) {
  const std::int64_t state = state_bytes(kXxl).total();
  for (std::int64_t tokens = 0; tokens < 10828; tokens += 97) {
    const std::int64_t activations = tokens * activation_bytes_per_token(kXxl);
    const std::int64_t shards = shards_for(state, activations, 95 * kGB).value();
    EXPECT_LE(sharded_bytes(state, activations, shards), 95e9) << tokens;
    EXPECT_GT(sharded_bytes(state, activations, shards - 1), 95e9) << tokens;
  }
  EXPECT_EQ(shards_for(state, 10828 * activation_bytes_per_token(kXxl), 95 * kGB), std::nullopt);
}

// One shard is the whole; ever so many leave the half that stays.
TEST(BlockMemory, ShardsAreBoundedByTheWholeAndByWhatStays) {
  EXPECT_EQ(sharded_bytes(100, 40, 1), 140);
  EXPECT_NEAR(sharded_bytes(100, 40, 1'000'000'000), 20, 1e-6);
  EXPECT_EQ(shards_for(100, 40, 140), 1);
  EXPECT_EQ(shards_for(100, 40, 139), 2);
  EXPECT_EQ(shards_for(100, 40, 21), 120);
  EXPECT_EQ(shards_for(100, 40, 20), std::nullopt);
}

TEST(BlockMemory, RefusesSizesThatCannotBeCounted) {
  EXPECT_THROW(validate({.d_model = 0}), Error);
  EXPECT_THROW(validate({.d_ff = std::int64_t{1} << 21}), Error);
  EXPECT_NO_THROW(validate({.d_model = 1 << 20, .d_ff = 1 << 20, .blocks = 1 << 16}));
  EXPECT_GT(state_bytes({.d_model = 1 << 20, .d_ff = 1 << 20, .blocks = 1 << 16}).total(), 0);
}

}  // namespace
}  // namespace syslab::parallel
