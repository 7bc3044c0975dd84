#include "measure/cache_plan.hpp"

#include <gtest/gtest.h>

#include "tests/measure/fake_device.hpp"

namespace syslab::measure {
namespace {

constexpr std::uint64_t kMi = 1 << 20;

struct CachePlanTest : testing::Test {
  FakeLab fake;
  CachePlan plan(const char* protocol, std::uint64_t bytes_per_set, std::uint64_t memory) {
    fake.device.cache = 32 * kMi;
    return plan_caches(find_protocol(protocol), fake.device, bytes_per_set, memory);
  }
};

TEST_F(CachePlanTest, RotatesOverMoreThanTwiceTheCache) {
  const CachePlan caches = plan("kernel", 3 * kMi, 1024 * kMi);
  EXPECT_EQ(caches.sets, 22);  // 66 MiB > 64 MiB
  EXPECT_EQ(caches.flush_bytes, 0U);
  EXPECT_EQ(caches.state, "cold");
  EXPECT_EQ(caches.by, "rotation");
}

TEST_F(CachePlanTest, OneSetBeyondTwiceTheCacheIsColdByItself) {
  const CachePlan caches = plan("kernel", 65 * kMi, 1024 * kMi);
  EXPECT_EQ(caches.sets, 1);
  EXPECT_EQ(caches.state, "cold");
}

TEST_F(CachePlanTest, WritesOverTheCacheWhenThereWouldBeTooManySets) {
  const CachePlan caches = plan("kernel", 1024, 1024 * kMi);
  EXPECT_EQ(caches.sets, 4096);
  EXPECT_EQ(caches.flush_bytes, 64 * kMi);
  EXPECT_EQ(caches.state, "cold");
  EXPECT_EQ(caches.by, "flush");
}

TEST_F(CachePlanTest, WritesOverTheCacheWhenMemoryDoesNotAllowTheSets) {
  const CachePlan caches = plan("kernel", 20 * kMi, 79 * kMi);  // four sets would be needed
  EXPECT_EQ(caches.sets, 3);
  EXPECT_EQ(caches.flush_bytes, 64 * kMi);
  EXPECT_EQ(caches.by, "flush");
}

TEST_F(CachePlanTest, SaysSoWhenThereIsNoRoomForEither) {
  const CachePlan caches = plan("kernel", 10 * kMi, 40 * kMi);
  EXPECT_EQ(caches.sets, 4);
  EXPECT_EQ(caches.flush_bytes, 0U);
  EXPECT_EQ(caches.state, "partly cold");
}

TEST_F(CachePlanTest, HotIsOneSet) {
  for (const char* protocol : {"hot", "quick", "cs336"}) {
    const CachePlan caches = plan(protocol, 1024, 1024 * kMi);
    EXPECT_EQ(caches.sets, 1);
    EXPECT_EQ(caches.state, "hot");
  }
}

TEST_F(CachePlanTest, DoBenchWritesItsOwn256Megabytes) {
  EXPECT_EQ(plan("do_bench", kMi, 1024 * kMi).flush_bytes, 256'000'000U);
  EXPECT_EQ(plan("do_bench", kMi, 1024 * kMi).sets, 1) << "a device that queues nothing needs no more";
  EXPECT_EQ(plan("do_bench", kMi, 40 * kMi).flush_bytes, 256'000'000U) << "or it would be another protocol";
  fake.device.block = 16;
  EXPECT_EQ(plan("do_bench", kMi, 1024 * kMi).sets, 16) << "one for each call queued";
}

}  // namespace
}  // namespace syslab::measure
