// The norm over all ranks' parts is that of one process, the same bits everywhere.
#include "parallel/shard_norm.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/parallel/shard_norm_fixture.hpp"

namespace syslab::parallel {
namespace {

using device::Stream;
using test::with_ranks;

using test::drawn_gradients;
using test::NormAsked;
using test::NormFound;
using test::shard_norm;

TEST(ShardNorm, IsTheNormOfOneProcessTheSameBitsEverywhere) {
  const std::vector<float> all = drawn_gradients(1000);
  double sum = 0;
  for (const float one : all) sum += static_cast<double>(one) * one;
  for (const int count : {2, 4, 6}) {
    with_ranks(count, [&](comm::Communicator& ranks, Stream compute, Stream communication) {
      const NormFound made = shard_norm(ranks, all, {.max_norm = 2, .scale = 0.5F}, compute, communication);
      EXPECT_NEAR(made.norm, 0.5 * std::sqrt(sum), 3 * 0x1p-24 * std::sqrt(sum));
      EXPECT_NEAR(made.factor, 2 / (0.5 * std::sqrt(sum) + 1e-6), 1e-6);
      EXPECT_EQ(made.non_finite, 0);
      for (const std::string& text : ranks.exchange(std::to_string(std::bit_cast<std::uint32_t>(made.norm)))) {
        EXPECT_EQ(text, std::to_string(std::bit_cast<std::uint32_t>(made.norm)));
      }
    });
  }
}

TEST(ShardNorm, TellsAllRanksOfWhatIsNoNumberOnOne) {
  with_ranks(3, [&](comm::Communicator& ranks, Stream compute, Stream communication) {
    std::vector<float> all = drawn_gradients(40);
    all[7] = std::numeric_limits<float>::quiet_NaN();
    const NormFound wrong = shard_norm(ranks, all, {}, compute, communication);
    EXPECT_TRUE(std::isnan(wrong.norm));
    EXPECT_EQ(wrong.non_finite, 1);
    // An infinite loss of one rank is known to all, and leaves the gradients' norm as it is.
    NormAsked asked{.losses = {1, std::numeric_limits<float>::infinity(), 2}};
    const NormFound lossy = shard_norm(ranks, drawn_gradients(40), asked, compute, communication);
    EXPECT_EQ(lossy.non_finite, 1);
    EXPECT_EQ(lossy.norm, shard_norm(ranks, drawn_gradients(40), {}, compute, communication).norm);
  });
}

}  // namespace
}  // namespace syslab::parallel
