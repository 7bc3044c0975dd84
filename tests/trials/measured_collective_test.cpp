// Collectives as experiments measure them: what is expected, what is found wrong, and both rings beside their formulas.
#include "trials/measured_collective.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "core/error.hpp"
#include "paper/ring_costs.hpp"
#include "parallel/ring_all_reduce.hpp"
#include "tests/parallel/ranks_fixture.hpp"
#include "trials/case_ranks.hpp"

namespace syslab::parallel {
namespace {

using comm::Operation;
using device::Stream;
using test::with_ranks;

constexpr std::array kAll{Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather,
                          Operation::broadcast};

double error_after(MeasuredCollective& one, Stream stream, int calls) {
  one.refresh(calls);
  for (int i = 0; i < calls; ++i) one.call();
  device::synchronize(stream);
  return one.error();
}

TEST(BusBandwidth, CountsWhatALinkCarries) {
  EXPECT_EQ(bus_factor(Operation::all_reduce, 2), 1);
  EXPECT_EQ(bus_factor(Operation::all_reduce, 4), 1.5);
  EXPECT_EQ(bus_factor(Operation::reduce_scatter, 4), 0.75);
  EXPECT_EQ(bus_factor(Operation::all_gather, 2), 0.5);
  EXPECT_EQ(bus_factor(Operation::broadcast, 6), 1);
  EXPECT_THROW(bus_factor(Operation::send, 2), Error);
}

TEST(BusBandwidth, OperationsAreFoundByName) {
  for (const Operation operation : kAll) EXPECT_EQ(parse_collective(to_string(operation)), operation);
  EXPECT_THROW(parse_collective("send"), Error);
  EXPECT_THROW(parse_collective("all_reduces"), Error);
}

TEST(Content, DiffersByElementRankAndSample) {
  std::set<std::uint32_t> seen;
  int alike = 0;
  for (std::uint64_t element = 0; element < 1000; ++element) {
    const std::uint32_t here = content(element, 1, 5);
    EXPECT_LT(here, 256U);
    seen.insert(here);
    alike += (here == content(element, 2, 5)) + (here == content(element, 1, 6)) + (here == content(element + 1, 1, 5));
  }
  EXPECT_GT(seen.size(), 200U);
  EXPECT_LT(alike, 60);
}

TEST(CollectiveContent, OneWrongElementIsFoundInRelationToTheLargest) {
  const CollectiveContent content{
      .operation = Operation::reduce_scatter, .ranks = 3, .rank = 2, .count = 50, .sample = 4};
  std::vector<float> found(50);
  float largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (int rank = 0; rank < 3; ++rank) found[i] += static_cast<float>(parallel::content(100 + i, rank, 4));
    largest = std::max(largest, found[i]);
  }
  const auto error = [&] { return relative_error(found.data(), 50, content, 1, {}); };
  EXPECT_EQ(error(), 0);
  found[49] -= 3;
  EXPECT_EQ(error(), 3.0 / static_cast<double>(largest));
  found[7] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(error(), std::numeric_limits<double>::infinity());
  found[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(error()));
}

TEST(MeasuredCollective, HoldsWhatTheFormulaSaysOnEveryRankOnceAndManyTimes) {
  for (const int size : {1, 2, 3, 4, 6}) {
    for (const Operation operation : kAll) {
      with_ranks(size, [&](comm::Communicator& ranks, Stream, Stream stream) {
        MeasuredCollective one(ranks, operation, 1003, stream);
        EXPECT_EQ(error_after(one, stream, 1), 0) << one.what();
        EXPECT_EQ(one.tolerance(), 0);
        EXPECT_EQ(error_after(one, stream, 1), 0) << one.what();
        const double often = error_after(one, stream, 20);
        EXPECT_LE(often, one.tolerance()) << one.what();
        EXPECT_LT(one.tolerance(), 2e-5);
        EXPECT_EQ(one.tolerance() > 0, operation == Operation::all_reduce && (size == 3 || size == 6));
      });
    }
  }
}

TEST(MeasuredCollective, MovesWholeElementsAndAsManyForEachRank) {
  with_ranks(3, [](comm::Communicator& ranks, Stream, Stream stream) {
    EXPECT_EQ(MeasuredCollective(ranks, Operation::all_reduce, 1003, stream).bytes(), 1000);
    EXPECT_EQ(MeasuredCollective(ranks, Operation::all_gather, 1003, stream).bytes(), 996);
    EXPECT_THROW(MeasuredCollective(ranks, Operation::reduce_scatter, 11, stream), Error);
  });
}

TEST(MeasuredCollective, FindsAnAllReduceThatDoesNothingOrTooMuch) {
  with_ranks(2, [](comm::Communicator& ranks, Stream, Stream stream) {
    MeasuredCollective nothing(ranks, Operation::all_reduce, 400, stream, [](const TensorView&, Stream) {});
    EXPECT_GT(error_after(nothing, stream, 1), 0.1);
    MeasuredCollective twice(ranks, Operation::all_reduce, 400, stream, [&](const TensorView& buffer, Stream on) {
      for (int i = 0; i < 2; ++i) ranks.all_reduce(buffer, comm::Reduction::sum, {"benchmark"}, on);
    });
    EXPECT_GT(error_after(twice, stream, 1), 0.1);
    EXPECT_GT(error_after(twice, stream, 20), 0.1);
    MeasuredCollective late(ranks, Operation::all_reduce, 400, stream, [&](const TensorView& buffer, Stream on) {
      const TensorView front(buffer.data, buffer.dtype, {buffer.elements() - 1});
      ranks.all_reduce(front, comm::Reduction::sum, {"benchmark"}, on);
    });
    EXPECT_GT(error_after(late, stream, 1), 0) << "the last element was left out";
  });
}

TEST(RingAllReduce, SumsOnEveryRankForAnyLengthAndSendsWhatTheFormulaSays) {
  for (const int size : {1, 2, 3, 4, 6}) {
    for (const std::int64_t elements : {1, 5, 12, 1001}) {
      for (const Ring ring : {Ring::parts, Ring::whole}) {
        std::atomic<std::uint64_t> sent{0};
        with_ranks(size, [&](comm::Communicator& ranks, Stream, Stream stream) {
          const auto around = std::make_shared<RingAllReduce>(ranks, ring, elements, DType::f32, stream);
          MeasuredCollective one(ranks, Operation::all_reduce, 4 * elements, stream,
                                 [around](const TensorView& buffer, Stream) { around->run(buffer); });
          EXPECT_EQ(error_after(one, stream, 1), 0) << one.what();
          sent += ranks.counters().total(Operation::send).payload_bytes;
          EXPECT_EQ(error_after(one, stream, 3), 0) << one.what() << ": 256 · 6^3 is exact";
        });
        const double bytes = 4.0 * static_cast<double>(elements);
        const double formula = ring == Ring::parts ? ring_all_reduce_sent(bytes, size) : (size - 1) * bytes;
        EXPECT_NEAR(static_cast<double>(sent), size * formula, 1e-6) << size << " ranks, " << elements << " elements";
      }
    }
  }
}

TEST(CaseRanks, GiveEverybodyRank0sNumberToTheBit) {
  with_ranks(3, [](comm::Communicator& ranks, Stream, Stream) {
    EXPECT_EQ(of_first(ranks, 0.1 + ranks.rank()), 0.1);
    EXPECT_EQ(of_first(ranks, std::ldexp(1.0 + ranks.rank(), 40)), 0x1p40);
  });
}

TEST(CaseRanks, OneAloneNeedsNoRendezvous) {
  const auto alone = join({.backend = "shm", .what = "a case"});
  EXPECT_EQ(alone->size(), 1);
}

}  // namespace
}  // namespace syslab::parallel
