// Sums in the order of ranks, and who owns which part.
#include "comm/reduce.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "comm/signature.hpp"

namespace syslab::comm {
namespace {

template <typename T>
std::vector<T> reduced(const std::vector<std::vector<T>>& of, Reduction reduction) {
  std::vector<const void*> sources;
  for (const auto& source : of) sources.push_back(source.data());
  std::vector<T> to(of[0].size());
  reduce_in_order(sources, to.data(), dtype_of<T>, static_cast<std::int64_t>(to.size()), reduction);
  return to;
}

TEST(ReduceInOrder, AddsFromTheFirstRankToTheLast) {
  EXPECT_EQ(reduced<float>({{1e8F}, {1.0F}, {-1e8F}}, Reduction::sum)[0], 0.0F) << "1 is lost beside 1e8";
  EXPECT_EQ(reduced<float>({{1e8F}, {-1e8F}, {1.0F}}, Reduction::sum)[0], 1.0F);
  EXPECT_EQ(reduced<double>({{1e8}, {1.0}, {-1e8}}, Reduction::sum)[0], 1.0);
}

TEST(ReduceInOrder, AddsEveryRankOnce) {
  EXPECT_EQ(reduced<float>({{1}, {2}, {4}, {8}, {16}}, Reduction::sum)[0], 31.0F);
  EXPECT_EQ(reduced<double>({{1}, {2}, {4}, {8}}, Reduction::sum)[0], 15.0);
  EXPECT_EQ(to_float(reduced<f16>({{to_f16(1)}, {to_f16(2)}, {to_f16(4)}, {to_f16(8)}}, Reduction::sum)[0]), 15.0F);
}

TEST(ReduceInOrder, RoundsHalfPrecisionOnce) {
  // In bf16 256 + 1 is 256, and so would be 256 + 1 + 1; in fp32 it is 258, which bf16 holds.
  const auto sum = reduced<bf16>({{to_bf16(256)}, {to_bf16(1)}, {to_bf16(1)}}, Reduction::sum);
  EXPECT_EQ(to_float(sum[0]), 258.0F);
  // 40000 + 40000 is more than f16 holds, and the third rank takes it back.
  const auto back = reduced<f16>({{to_f16(40000)}, {to_f16(40000)}, {to_f16(-40000)}}, Reduction::sum);
  EXPECT_EQ(to_float(back[0]), 40000.0F);
}

TEST(ReduceInOrder, MaxAndMinKeepNansFromAnywhere) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Reduction reduction : {Reduction::max, Reduction::min, Reduction::sum}) {
    for (int place = 0; place < 3; ++place) {
      std::vector<std::vector<float>> of{{1}, {2}, {3}};
      of[static_cast<std::size_t>(place)][0] = nan;
      const float result = reduced(of, reduction)[0];
      EXPECT_NE(result, result) << to_string(reduction) << " with a NaN at rank " << place;
    }
  }
  EXPECT_EQ(reduced<f16>({{to_f16(-1)}, {to_f16(-2)}}, Reduction::max)[0].bits, to_f16(-1).bits);
  EXPECT_EQ(reduced<double>({{-1}, {-2}}, Reduction::min)[0], -2);
}

TEST(ReduceInOrder, MayWriteOverAnySource) {
  for (std::size_t into = 0; into < 3; ++into) {
    std::vector<std::vector<float>> of;
    for (int rank = 0; rank < 3; ++rank) of.emplace_back(3001, static_cast<float>(rank + 1));
    const void* sources[] = {of[0].data(), of[1].data(), of[2].data()};
    reduce_in_order(sources, of[into].data(), DType::f32, 3001, Reduction::sum);
    EXPECT_EQ(of[into], std::vector<float>(3001, 6.0F)) << into;
  }
}

TEST(OwnedPart, CoversAllElementsOnceAndEvenly) {
  for (const std::int64_t count : {0, 1, 2, 5, 6, 7, 1000}) {
    for (int parts = 1; parts <= 7; ++parts) {
      std::int64_t end = 0;
      for (int part = 0; part < parts; ++part) {
        const OwnedPart owned = owned_part(count, part, parts);
        EXPECT_EQ(owned.begin, end);
        EXPECT_GE(owned.count(), count / parts);
        EXPECT_LE(owned.count(), count / parts + 1);
        end = owned.end;
      }
      EXPECT_EQ(end, count);
    }
  }
}

TEST(Signature, NamesTheFirstRankThatDiffers) {
  Signature one{.number = 4, .count = 8};
  one.label = FixedText<40>("bucket 2");
  Signature other = one;
  other.dtype = DType::bf16;
  EXPECT_EQ(disagreement(std::vector{one, one, one}), "");
  EXPECT_EQ(
      disagreement(std::vector{one, one, other}),
      "the ranks disagree: rank 0 calls all_reduce #4 (bucket 2) of 8 fp32 elements, sum; rank 2 calls all_reduce "
      "#4 (bucket 2) of 8 bf16 elements, sum: every rank must call the same operations in the same order");
}

TEST(Signature, OfAMessageComparesWhatIsMovedAlone) {
  Signature sent{.number = 2, .count = 8, .peer = 1, .operation = Operation::send};
  Signature expected{.number = 2, .count = 8, .peer = 0, .operation = Operation::receive};
  expected.kind = FixedText<16>("control");
  EXPECT_EQ(disagreement(0, sent, 1, expected), "");
  expected.count = 9;
  EXPECT_NE(disagreement(0, sent, 1, expected).find("rank 1 calls receive #2 (control) of 9 fp32"), std::string::npos);
}

}  // namespace
}  // namespace syslab::comm
