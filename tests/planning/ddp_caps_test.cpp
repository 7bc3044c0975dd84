#include "planning/ddp_caps.hpp"

#include <gtest/gtest.h>

#include "tests/planning/pieces_fixture.hpp"

namespace syslab::parallel {
namespace {

constexpr std::int64_t kKi = 1024;

// Gradients of 100 KiB each, final every millisecond.
struct Backward {
  GradientPieces pieces;
  std::vector<Seconds> ready;

  explicit Backward(int count, double apart = 1e-3) : pieces(made(count)) {
    for (int i = 1; i <= count; ++i) ready.emplace_back(apart * i);
  }
  static GradientPieces made(int count) {
    std::vector<Piece> pieces;
    for (int i = 0; i < count; ++i) pieces.push_back({"p" + std::to_string(i), 50 * kKi * i, 50 * kKi});
    return {std::move(pieces), DType::bf16};
  }
};

// PyTorch's own reducer for 10 gradients of 100 KiB: `first` is reached by the third, `cap` by every fourth behind it.
TEST(DdpCaps, ABucketIsClosedWhenItHasReachedItsLimit) {
  const Backward backward(10);
  EXPECT_EQ(schedule_as_ddp(backward.pieces, 250 * kKi, 400 * kKi), BucketSchedule({3, 7, 10}));
  EXPECT_EQ(schedule_as_ddp(backward.pieces, 300 * kKi, 401 * kKi), BucketSchedule({3, 8, 10}));
  EXPECT_EQ(schedule_as_ddp(backward.pieces, 1, 1), schedule_one_each(backward.pieces));
  EXPECT_EQ(schedule_as_ddp(backward.pieces, 1 << 20, 25 << 20), schedule_flat(backward.pieces));
}

TEST(DdpCaps, TheBestAreNoWorseThanAnyOtherAndNoBetterThanThePlan) {
  const Backward backward(40, 0.2e-3);
  const TransferCurve curve({{1, Seconds(0.3e-3)}, {4000 * kKi, Seconds(4e-3)}});
  const Seconds slack(1e-4);
  const DdpCaps best = best_ddp_caps(backward.pieces, backward.ready, curve, slack);
  EXPECT_EQ(best.schedule, schedule_as_ddp(backward.pieces, best.first, best.cap));
  for (const std::int64_t first : {64 * kKi, 256 * kKi, 1024 * kKi}) {
    for (const std::int64_t cap : {64 * kKi, 512 * kKi, 4096 * kKi}) {
      EXPECT_LE(best.timeline.end(),
                ddp_with(first, cap, backward.pieces, backward.ready, curve).timeline.end() + slack);
    }
  }
  EXPECT_GE(best.timeline.end(), schedule_buckets(backward.pieces, backward.ready, curve).best_end);
}

TEST(DdpCaps, OfEqualEndsTheFewestBucketsAreTaken) {
  // All final at once, and a call costs nothing: any bucketing ends at the same time.
  Backward backward(8);
  std::ranges::fill(backward.ready, Seconds(1e-3));
  const TransferCurve curve({{800 * kKi, Seconds(1e-3)}, {1, Seconds(1e-3 / (800 * kKi))}});
  EXPECT_EQ(best_ddp_caps(backward.pieces, backward.ready, curve).schedule.size(), 1);
}

TEST(DdpCaps, OfFewGradientsNoLimitsAreBetter) {
  const std::vector<std::vector<std::int64_t>> models{
      {512, 512, 512, 512, 512, 512, 512, 512, 512, 512, 512, 512}, {3, 90, 1, 1, 40, 7, 200, 2}, {5}};
  for (const std::vector<std::int64_t>& sizes : models) {
    const GradientPieces pieces = test::pieces_of_sizes(sizes, DType::bf16);
    std::vector<Seconds> ready;
    for (std::size_t i = 0; i < sizes.size(); ++i) ready.emplace_back(1e-3 * static_cast<double>(i));
    const TransferCurve curve({{1, Seconds(0.2e-3)}, {pieces.bytes() + 1, Seconds(5e-3)}});
    const DdpCaps best = best_ddp_caps(pieces, ready, curve, Seconds(0));
    const std::int64_t step = std::max<std::int64_t>(2, pieces.bytes() / 200);
    for (std::int64_t first = 2; first <= pieces.bytes(); first += step) {
      for (std::int64_t cap = 2; cap <= pieces.bytes(); cap += step) {
        EXPECT_LE(best.timeline.end(), ddp_with(first, cap, pieces, ready, curve).timeline.end())
            << first << " " << cap;
      }
    }
  }
}

TEST(DdpCaps, ThousandsOfGradientsAreTriedInLittleTime) {
  const Backward backward(2000, 1e-5);
  const TransferCurve curve({{1, Seconds(20e-6)}, {200'000 * kKi, Seconds(40e-3)}});
  const DdpCaps best = best_ddp_caps(backward.pieces, backward.ready, curve);
  EXPECT_GE(best.timeline.end(), schedule_buckets(backward.pieces, backward.ready, curve).best_end);
}

// 1,000,961 bytes are 0.954591… MiB: in four digits the limit would be another.
TEST(DdpCaps, ALimitIsToldInDigitsThatMakeTheSameBuckets) {
  const std::vector<std::int64_t> sizes{500'480, 20, 500'500, 1};
  const GradientPieces pieces = test::pieces_of_sizes(sizes, DType::bf16);
  for (const std::int64_t cap : {std::int64_t{1'000'960}, std::int64_t{1'000'961}, std::int64_t{1'001'000}}) {
    DdpCaps caps{cap, cap, schedule_as_ddp(pieces, cap, cap), {}};
    const double told = told_cap(caps, pieces);
    const auto bytes = static_cast<std::int64_t>(told * (1 << 20));
    EXPECT_EQ(schedule_as_ddp(pieces, cap, bytes), caps.schedule) << told;
  }
  const Backward backward(10);
  EXPECT_EQ(told_cap({1, 400 * kKi, schedule_as_ddp(backward.pieces, 1, 400 * kKi), {}}, backward.pieces), 0.3906);
}

}  // namespace
}  // namespace syslab::parallel
