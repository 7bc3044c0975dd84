// Schedules, owners and rows of data parallelism, as callers of libsyslab.so see them.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "capi/syslab.h"

namespace {

using Numbers = std::vector<std::int64_t>;

// As buckets' ends; empty if it failed.
Numbers scheduled(const Numbers& bytes, std::int64_t limit) {
  Numbers ends(bytes.size());
  std::int64_t buckets = 0;
  const int status =
      syslab_bucket_schedule(bytes.data(), static_cast<std::int64_t>(bytes.size()), limit, ends.data(), &buckets);
  if (status != SYSLAB_OK) return {};
  ends.resize(static_cast<std::size_t>(buckets));
  return ends;
}

void expect_error(int status, const std::string& part) {
  EXPECT_EQ(status, SYSLAB_ERROR_USAGE);
  EXPECT_NE(std::string(syslab_last_error()).find(part), std::string::npos) << syslab_last_error();
}

TEST(BucketSchedule, OfTheHandOutsModels) {
  const Numbers toy{1000, 2000, 400}, tied{1000, 2000, 2000, 400};  // in reverse order of registration
  const auto limit = [](double mb) { return static_cast<std::int64_t>(mb * (1 << 20)); };
  EXPECT_EQ(scheduled(toy, limit(0.0016)), (Numbers{1, 2, 3}));
  EXPECT_EQ(scheduled(toy, limit(0.0001)), (Numbers{1, 2, 3}));
  EXPECT_EQ(scheduled(toy, limit(0.01)), (Numbers{3}));
  EXPECT_EQ(scheduled(tied, limit(0.0016)), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(scheduled(tied, limit(0.01)), (Numbers{4}));
  EXPECT_EQ(scheduled(toy, 0), (Numbers{1, 2, 3}));
  EXPECT_EQ(scheduled(toy, -1), (Numbers{3}));
}

TEST(BucketSchedule, RefusesWhatIsNoGradient) {
  std::array<std::int64_t, 2> bytes{4, 3}, ends{};
  std::int64_t buckets = 0;
  expect_error(syslab_bucket_schedule(bytes.data(), 2, 100, ends.data(), &buckets), "gradient 1 has 3 bytes");
  expect_error(syslab_bucket_schedule(bytes.data(), 0, 100, ends.data(), &buckets), "no gradients at all");
  expect_error(syslab_bucket_schedule(nullptr, 2, 100, ends.data(), &buckets), "`bytes` is NULL");
  bytes[1] = 4;
  expect_error(syslab_bucket_schedule(bytes.data(), 2, 100, nullptr, &buckets), "take the answer");
  bytes[1] = std::numeric_limits<std::int64_t>::max() - 1;
  expect_error(syslab_bucket_schedule(bytes.data(), 2, 100, ends.data(), &buckets), "2^56 together");
}

TEST(BucketPlan, JoinsWhatIsFinalAtOnceAndPartsWhatIsNot) {
  const Numbers bytes{1000, 1000, 1000}, sizes{1000, 2000};
  const std::vector<double> times{1.0, 1.1};
  Numbers ends(3);
  std::int64_t buckets = 0;
  double exposed = 0;
  const auto plan = [&](const std::vector<double>& ready) {
    return syslab_bucket_plan(bytes.data(), ready.data(), 3, sizes.data(), times.data(), 2, ends.data(), &buckets,
                              &exposed);
  };
  ASSERT_EQ(plan({0, 0, 0}), SYSLAB_OK) << syslab_last_error();
  EXPECT_EQ(buckets, 1);
  EXPECT_EQ(ends[0], 3);
  ASSERT_EQ(plan({0, 0, 10}), SYSLAB_OK) << syslab_last_error();
  EXPECT_EQ(buckets, 2);
  EXPECT_EQ(ends[0], 2);
  EXPECT_DOUBLE_EQ(exposed, 1.0);  // of the last one's message
  expect_error(plan({0, -1, 0}), "ready[1] is -1");
}

TEST(AssignOwners, GoesOnFromWhatRanksHave) {
  const Numbers elements{1, 5, 3, 3};
  Numbers loads(2), owners(4);
  ASSERT_EQ(syslab_assign_owners(elements.data(), 4, loads.data(), 2, owners.data()), SYSLAB_OK);
  EXPECT_EQ(owners, (Numbers{0, 0, 1, 1}));
  ASSERT_EQ(syslab_assign_owners(elements.data(), 1, loads.data(), 2, owners.data()), SYSLAB_OK);
  EXPECT_EQ(loads, (Numbers{7, 6}));
  expect_error(syslab_assign_owners(elements.data(), 4, loads.data(), 0, owners.data()), "0 ranks");
  const Numbers negative{-1};
  expect_error(syslab_assign_owners(negative.data(), 1, loads.data(), 2, owners.data()), "-1 elements");
}

TEST(ShardRows, TheLastHaveLess) {
  std::int64_t first = 0, own = 0, padded = 0;
  ASSERT_EQ(syslab_shard_rows(10, 4, 3, &first, &own, &padded), SYSLAB_OK);
  EXPECT_EQ((std::array{first, own, padded}), (std::array<std::int64_t, 3>{9, 1, 3}));
  expect_error(syslab_shard_rows(10, 4, 4, &first, &own, &padded), "rank 4 of 4");
  expect_error(syslab_shard_rows(10, 4, std::int64_t{1} << 40, &first, &own, &padded), "at most");
}

TEST(ParallelAbi, IsWhatTheHeaderSays) { EXPECT_EQ(syslab_parallel_abi(), SYSLAB_PARALLEL_ABI); }

}  // namespace
