// The memory of a call: the one that was lent where it suffices, and how it is cut.
#include "ops/call_memory.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace syslab::ops {
namespace {

class CallMemoryTest : public testing::Test {
 protected:
  alignas(128) std::byte bytes_[1024] = {};
  bool is_lent(const void* pointer) const { return pointer >= bytes_ && pointer < bytes_ + sizeof(bytes_); }
};

TEST_F(CallMemoryTest, IsTheLentOneWhereThatIsLargeEnough) {
  EXPECT_EQ(CallMemory({bytes_, 100}, 100, "test").data(), bytes_);
  EXPECT_FALSE(is_lent(CallMemory({bytes_, 99}, 100, "test").data()));
  EXPECT_FALSE(is_lent(CallMemory({}, 100, "test").data()));
}

TEST_F(CallMemoryTest, BeginsAtAMultipleOfWhatWasAsked) {
  EXPECT_EQ(CallMemory({bytes_ + 1, 200}, 100, "test", {}, 64).data(), bytes_ + 64);
  EXPECT_EQ(CallMemory({bytes_ + 1, 63 + 100}, 100, "test", {}, 64).data(), bytes_ + 64);
  EXPECT_FALSE(is_lent(CallMemory({bytes_ + 1, 63 + 99}, 100, "test", {}, 64).data()));
  EXPECT_EQ(aligned_bytes({bytes_ + 1, 10}, 64), 0U);
}

TEST_F(CallMemoryTest, OfNothingIsNothing) {
  EXPECT_EQ(CallMemory({}, 0, "test").data(), nullptr);
  EXPECT_EQ(aligned_bytes({nullptr, 0}, 16), 0U);
}

TEST_F(CallMemoryTest, PartsFollowEachOtherAndStayAligned) {
  const std::size_t needed = CallMemory::part_bytes(3 * sizeof(float)) + CallMemory::part_bytes(130);
  EXPECT_EQ(needed, 128U + 256U);
  CallMemory memory({bytes_, needed}, needed, "test");
  EXPECT_EQ(static_cast<void*>(memory.take<float>(3)), bytes_);
  EXPECT_EQ(memory.take_bytes(130), bytes_ + 128);
  EXPECT_EQ(memory.data(), bytes_ + 384);
}

}  // namespace
}  // namespace syslab::ops
