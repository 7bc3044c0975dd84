// Schemes of checkpointing, counted on a stack of blocks: each costs what its formula says and gives the same bits.
#include "model/toy_stack.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/model/refusal.hpp"

namespace syslab::model {
namespace {

TEST(ToyStack, CostsWhatTheFormulasSayAndGivesTheSameBits) {
  for (std::int64_t blocks = 1; blocks <= 70; ++blocks) {
    const std::vector<double> expected = run_toy_stack(Scheme::none, blocks, 3).gradients;
    for (const Scheme scheme : kSchemes) {
      const ToyRun run = run_toy_stack(scheme, blocks, 3);
      SchemeCost formula = cost_of(scheme, blocks);
      EXPECT_LE(run.cost.streams, formula.streams) << to_string(scheme) << ", " << blocks;
      if (scheme == Scheme::binomial) formula.streams = run.cost.streams;
      EXPECT_EQ(run.cost, formula) << to_string(scheme) << ", " << blocks << ": " << run.cost.forwards;
      EXPECT_EQ(run.gradients, expected) << to_string(scheme) << ", " << blocks;
    }
  }
}

// The hand-out's answers for 32 blocks.
TEST(ToyStack, Of32Blocks) {
  EXPECT_EQ(cost_of(Scheme::every, 32), (SchemeCost{63, 32, 1}));
  EXPECT_EQ(cost_of(Scheme::sqrt, 32), (SchemeCost{62, 6, 6}));
  EXPECT_EQ(cost_of(Scheme::halving, 32), (SchemeCost{32 + 16 * 5, 6, 1}));
  EXPECT_EQ(cost_of(Scheme::left_deep, 32), (SchemeCost{528, 1, 1}));
  EXPECT_LT(cost_of(Scheme::binomial, 32).forwards, cost_of(Scheme::halving, 32).forwards);
}

// Every way to split, by brute force: advances(n, s) = min over m of m + advances(n − m, s − 1) + advances(m, s).
TEST(ToyStack, NoOtherSplitRunsFewerBlocksThanTheBinomialOne) {
  constexpr std::size_t kMost = 48;
  for (std::size_t n = 2; n <= kMost; ++n) {
    const SchemeCost found = cost_of(Scheme::binomial, static_cast<std::int64_t>(n));
    const auto streams = static_cast<std::size_t>(found.streams);
    std::vector<std::vector<std::int64_t>> least(streams + 1, std::vector<std::int64_t>(n + 1, 0));
    for (std::size_t s = 1; s <= streams; ++s) {
      for (std::size_t m = 2; m <= n; ++m) {
        const auto wide = static_cast<std::int64_t>(m);
        least[s][m] = wide * (wide - 1) / 2;
        for (std::size_t by = 1; s > 1 && by < m; ++by) {
          least[s][m] = std::min(least[s][m], static_cast<std::int64_t>(by) + least[s - 1][m - by] + least[s][by]);
        }
      }
    }
    EXPECT_EQ(found.forwards, static_cast<std::int64_t>(n) + least[streams][n]) << n;
  }
}

TEST(ToyStack, RefusesWhatCannotBe) {
  EXPECT_TRUE(test::refuses([] { run_toy_stack(Scheme::none, 0, 1); }, "blocks is 0", "1 to 4096"));
  EXPECT_TRUE(test::refuses([] { cost_of(Scheme::none, 5000); }, "5000"));
  EXPECT_TRUE(test::refuses([] { parse_scheme("halvin"); }, "halving"));
  for (const Scheme scheme : kSchemes) EXPECT_EQ(parse_scheme(to_string(scheme)), scheme);
}

// The picture of a pass: what is told at each block's pass is what the counts say was the most, and there is one for
// each way through a block.
TEST(ToyStack, TheCourseOfAPassHasItsHeightAndItsLength) {
  for (const Scheme scheme : kSchemes) {
    const ToyRun run = run_toy_stack(scheme, 16, 3, ToyCourse::kept);
    const ToyRun other = run_toy_stack(scheme, 16, 3);
    EXPECT_TRUE(other.course.empty()) << "nobody asked for it";
    EXPECT_EQ(other.cost, run.cost);
    EXPECT_EQ(other.gradients, run.gradients);
    EXPECT_EQ(run.course.size(), static_cast<std::size_t>(run.cost.forwards + 16)) << to_string(scheme);
    std::int64_t streams = 0, residuals = 0;
    for (const Held& held : run.course) {
      streams = std::max(streams, held.streams);
      residuals = std::max(residuals, held.residuals);
    }
    EXPECT_EQ(streams, run.cost.streams) << to_string(scheme);
    EXPECT_EQ(residuals, run.cost.residuals) << to_string(scheme);
  }
}

}  // namespace
}  // namespace syslab::model
