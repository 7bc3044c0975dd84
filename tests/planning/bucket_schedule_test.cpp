// Buckets as the hand-outs and their tests count them.
#include "planning/bucket_schedule.hpp"

#include <gtest/gtest.h>

#include <array>

#include "model/parameters.hpp"
#include "tests/model/refusal.hpp"
#include "tests/planning/pieces_fixture.hpp"

namespace syslab::parallel {
namespace {

using test::pieces_of_sizes;
using test::refuses;

// The parameters last registered first, as the hand-out packs them.
GradientPieces reverse_registration(const char* model) {
  const model::ParameterLayout layout(model::find_model(model));
  std::vector<Piece> pieces;
  std::int64_t first = 0;
  for (int index = layout.size() - 1; index >= 0; --index) {
    const std::int64_t elements = layout.info(index).shape.elements();
    pieces.push_back({layout.info(index).name, first, elements});
    first += elements;
  }
  return {std::move(pieces), DType::f32};
}

TEST(BucketSchedule, OfTheOfficialToyModelsHasAsManyBucketsAsTheLimitsOf2025Give) {
  const GradientPieces toy = pieces_of_sizes({250, 500, 100});        // fc3, fc2, fc1
  const GradientPieces tied = pieces_of_sizes({250, 500, 500, 100});  // fc5, fc3, fc2 = fc4, fc1
  for (const double unit : {0x1p20, 1e6}) {
    const auto buckets = [unit](const GradientPieces& pieces, double mb) {
      return schedule_by_cap(pieces, static_cast<std::int64_t>(mb * unit)).size();
    };
    EXPECT_EQ(buckets(toy, 0.0016), 3);
    EXPECT_EQ(buckets(toy, 0.0001), 3);
    EXPECT_EQ(buckets(toy, 0.01), 1);
    EXPECT_EQ(buckets(tied, 0.0016), 4);
    EXPECT_EQ(buckets(tied, 0.0001), 4);
    EXPECT_EQ(buckets(tied, 0.01), 1);
  }
}

TEST(BucketSchedule, OfTheHandoutsModelsHasAsManyBucketsAsReversePackingGives) {
  const GradientPieces xl25 = reverse_registration("xl25"), xl26 = reverse_registration("xl26");
  ASSERT_EQ(xl25.size(), 435);
  ASSERT_EQ(xl26.size(), 291);
  const auto buckets = [](const GradientPieces& pieces, double bytes) {
    return schedule_by_cap(pieces, static_cast<std::int64_t>(bytes)).size();
  };
  EXPECT_EQ(buckets(xl25, 0x1p20), 386);
  EXPECT_EQ(buckets(xl25, 1e6), 386);
  EXPECT_EQ(buckets(xl25, 10 * 0x1p20), 339);
  EXPECT_EQ(buckets(xl25, 10e6), 386);
  EXPECT_EQ(buckets(xl25, 100 * 0x1p20), 98);
  EXPECT_EQ(buckets(xl25, 100e6), 98);
  EXPECT_EQ(buckets(xl25, 1000 * 0x1p20), 8);
  EXPECT_EQ(buckets(xl25, 1000e6), 9);
  for (const double unit : {0x1p20, 1e6}) {
    EXPECT_EQ(buckets(xl26, unit), 258);
    EXPECT_EQ(buckets(xl26, 10 * unit), 258);
    EXPECT_EQ(buckets(xl26, 1000 * unit), 14);
  }
  EXPECT_EQ(buckets(xl26, 100 * 0x1p20), 161);
  EXPECT_EQ(buckets(xl26, 100e6), 163);
}

TEST(BucketSchedule, NeverPassesTheLimitWherePyTorchWould) {
  const GradientPieces pieces = pieces_of_sizes({100, 100, 100, 1000, 50, 50});
  EXPECT_EQ(schedule_by_cap(pieces, 800), BucketSchedule({2, 3, 4, 6}));
  EXPECT_EQ(schedule_by_cap(pieces, 799), BucketSchedule({1, 2, 3, 4, 6}));
  EXPECT_EQ(schedule_by_cap(pieces, 1200), BucketSchedule({3, 4, 6}));
}

TEST(BucketSchedule, CountsThePaddingInsideABucketAndNoneBehindIt) {
  const GradientPieces pieces({{"a", 0, 100}, {"b", 128, 100}, {"c", 256, 10}}, DType::f32);
  EXPECT_EQ(schedule_by_cap(pieces, 228 * 4), BucketSchedule({2, 3}));
  EXPECT_EQ(schedule_by_cap(pieces, 228 * 4 - 1), BucketSchedule({1, 3}));
  EXPECT_EQ(pieces.bytes(), 266 * 4);
  EXPECT_EQ(pieces.as(DType::bf16).bytes(0, 2), 228 * 2);
}

TEST(BucketSchedule, GivesTheFirstBucketALimitOfItsOwn) {
  const GradientPieces pieces = pieces_of_sizes({10, 10, 10, 10, 10, 10});
  const std::array<std::int64_t, 2> caps{40, 100};
  EXPECT_EQ(schedule_by_caps(pieces, caps), BucketSchedule({1, 3, 5, 6}));
}

TEST(BucketSchedule, OfACountIsAboutEven) {
  const GradientPieces pieces = pieces_of_sizes({10, 10, 10, 60, 10, 10, 10});
  EXPECT_EQ(schedule_by_count(pieces, 1), schedule_flat(pieces));
  EXPECT_EQ(schedule_by_count(pieces, 3), BucketSchedule({3, 4, 7}));
  EXPECT_EQ(schedule_by_count(pieces, 7), schedule_one_each(pieces));
  EXPECT_EQ(schedule_by_count(pieces, 100), schedule_one_each(pieces));
}

TEST(BucketSchedule, KnowsTheBucketOfAPieceAndItsOwnText) {
  const BucketSchedule schedule({3, 5, 9});
  EXPECT_EQ(schedule.size(), 3);
  EXPECT_EQ(schedule.begin(1), 3);
  EXPECT_EQ(schedule.bucket_of(0), 0);
  EXPECT_EQ(schedule.bucket_of(2), 0);
  EXPECT_EQ(schedule.bucket_of(3), 1);
  EXPECT_EQ(schedule.bucket_of(8), 2);
  EXPECT_EQ(schedule.text(), "3 5 9");
  EXPECT_EQ(BucketSchedule::parse("3 5 9"), schedule);
  EXPECT_TRUE(refuses([] { BucketSchedule::parse("3 x"); }, "'3 x'", "3 5 9"));
  EXPECT_TRUE(refuses([] { BucketSchedule({3, 3}); }, "[3 3]"));
  EXPECT_TRUE(refuses([] { BucketSchedule({}); }, "at least one"));
}

TEST(BucketSchedule, RefusesLimitsThatAreNone) {
  const GradientPieces pieces = pieces_of_sizes({1});
  EXPECT_EQ(bucket_mb_bytes(25), 25 << 20);
  EXPECT_EQ(bucket_mb_bytes(0.0001), 104);
  EXPECT_TRUE(refuses([] { bucket_mb_bytes(0); }, "0 MB"));
  EXPECT_TRUE(refuses([] { bucket_mb_bytes(-1); }, "-1 MB"));
  EXPECT_TRUE(refuses([] { bucket_mb_bytes(1e-7); }, "at least one byte"));
  EXPECT_EQ(bucket_mb_bytes(0x1p42), std::int64_t{1} << 62);
  EXPECT_TRUE(refuses([] { bucket_mb_bytes(99999999999999); }, "99999999999999 MB", "at most 4398046511104 MB"));
  EXPECT_TRUE(refuses([&] { schedule_by_caps(pieces, {}); }, "one positive limit"));
  EXPECT_TRUE(refuses([&] { schedule_by_count(pieces, 0); }, "0 buckets"));
}

TEST(GradientPieces, RefuseWhatIsNoArenaInReadyOrder) {
  const auto refused = [](std::vector<Piece> pieces, const char* part) {
    return refuses([&] { GradientPieces(pieces, DType::f32); }, part);
  };
  EXPECT_TRUE(refused({}, "no gradients"));
  EXPECT_TRUE(refused({{"a", 0, 0}}, "'a' has 0"));
  EXPECT_TRUE(refused({{"a", 0, 4}, {"b", 3, 4}}, "'b' begins at element 3"));
  EXPECT_TRUE(refused({{"a", 0, 4}, {"a", 4, 4}}, "two gradients are called 'a'"));
}

}  // namespace
}  // namespace syslab::parallel
