#include "planning/ddp_caps.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace syslab::parallel
