// Ring collectives: what the walk computes, what it counts, and the formulas beside it.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "paper/ring_costs.hpp"
#include "paper/ring_walk.hpp"

namespace syslab::parallel {
namespace {

// Rank r holds r·1000 + i at place i.
Buffers numbered(std::int64_t ranks, std::size_t elements) {
  Buffers buffers(static_cast<std::size_t>(ranks), std::vector<double>(elements));
  for (std::size_t rank = 0; rank < buffers.size(); ++rank) {
    std::iota(buffers[rank].begin(), buffers[rank].end(), 1000.0 * static_cast<double>(rank));
  }
  return buffers;
}

std::vector<double> sum_of(const Buffers& buffers) {
  std::vector<double> sum(buffers.front().size());
  for (const auto& one : buffers) std::transform(one.begin(), one.end(), sum.begin(), sum.begin(), std::plus<>());
  return sum;
}

TEST(RingWalk, AllReduceGivesEveryRankTheSumForAnyLength) {
  for (const std::int64_t ranks : {1, 2, 3, 4, 7}) {
    for (const std::size_t elements : {0U, 1U, 2U, 5U, 12U, 28U}) {
      RingWalk ring(ranks);
      Buffers buffers = numbered(ranks, elements);
      const std::vector<double> expected = sum_of(buffers);
      ring.all_reduce(buffers);
      for (const auto& one : buffers) EXPECT_EQ(one, expected) << ranks << " ranks, " << elements << " elements";
      EXPECT_EQ(ring.steps(), 2 * (ranks - 1));
    }
  }
}

TEST(RingWalk, ReduceScatterLeavesEachRankItsPartOfTheSum) {
  RingWalk ring(3);
  Buffers buffers = numbered(3, 8);
  const std::vector<double> expected = sum_of(buffers);
  ring.reduce_scatter(buffers);
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    for (std::size_t i = ring.begin(rank, 8); i < ring.begin(rank + 1, 8); ++i) {
      EXPECT_EQ(buffers[static_cast<std::size_t>(rank)][i], expected[i]) << rank << ", " << i;
    }
  }
}

TEST(RingWalk, AllGatherBringsEveryPartToEveryRank) {
  RingWalk ring(4);
  Buffers buffers = numbered(4, 10);
  std::vector<double> expected;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    for (std::size_t i = ring.begin(rank, 10); i < ring.begin(rank + 1, 10); ++i) {
      expected.push_back(buffers[static_cast<std::size_t>(rank)][i]);
    }
  }
  ring.all_gather(buffers);
  for (const auto& one : buffers) EXPECT_EQ(one, expected);
}

TEST(RingWalk, RefusesBuffersOfDifferentLengthsAndRingsOfNobody) {
  EXPECT_THROW(RingWalk(0), Error);
  Buffers uneven{{1, 2}, {1}}, too_few{{1}};
  EXPECT_THROW(RingWalk(2).all_reduce(uneven), Error);
  EXPECT_THROW(RingWalk(2).all_gather(too_few), Error);
}

TEST(RingCosts, AreTheBytesOfTheWalkWhereAllPartsAreEqual) {
  for (const std::int64_t ranks : {1, 2, 4, 6}) {
    const double bytes = 24 * 4;
    const auto sent = [&](void (RingWalk::*collective)(Buffers&)) {
      RingWalk ring(ranks);
      Buffers buffers = numbered(ranks, 24);
      (ring.*collective)(buffers);
      const auto [least, most] = std::ranges::minmax(ring.sent_elements());
      EXPECT_EQ(least, most);
      return 4.0 * static_cast<double>(most);
    };
    EXPECT_DOUBLE_EQ(ring_all_gather_sent(bytes, ranks), sent(&RingWalk::all_gather));
    EXPECT_DOUBLE_EQ(ring_reduce_scatter_sent(bytes, ranks), sent(&RingWalk::reduce_scatter));
    EXPECT_DOUBLE_EQ(ring_all_reduce_sent(bytes, ranks), sent(&RingWalk::all_reduce));
  }
}

TEST(RingCosts, OneRankSendsNothingAndManySendATensorAWay) {
  for (const auto cost : {ring_all_gather_sent, ring_reduce_scatter_sent, ring_all_reduce_sent, chain_broadcast_sent}) {
    EXPECT_EQ(cost(1e9, 1), 0);
    EXPECT_EQ(cost(0, 8), 0);
    EXPECT_THROW(cost(1, 0), Error);
  }
  const std::int64_t many = 1'000'000'000;
  EXPECT_NEAR(ring_all_gather_sent(1e6, many), 1e6, 0.01);
  EXPECT_NEAR(ring_all_reduce_sent(1e6, many), 2e6, 0.01);
  EXPECT_NEAR(chain_broadcast_sent(1e6, many), 1e6, 0.01);
}

}  // namespace
}  // namespace syslab::parallel
