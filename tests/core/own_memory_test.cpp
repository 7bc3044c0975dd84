#include "core/process/own_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

namespace syslab {
namespace {

TEST(OwnMemory, SeesWhatWasTouchedAndItsPeakAfterItWasGivenBack) {
  constexpr std::uint64_t kBytes = 32U << 20;
  if (!reset_memory_peak()) GTEST_SKIP() << "this kernel keeps its peak";
  const std::uint64_t before = own_memory("VmRSS").value();
  // From the system itself: an allocator (a sanitizer's, above all) may keep what it is given back.
  void* touched = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(touched, MAP_FAILED);
  std::memset(touched, 1, kBytes);
  ASSERT_EQ(munmap(touched, kBytes), 0);
  EXPECT_GE(own_memory("VmHWM").value(), before + kBytes * 9 / 10);
  EXPECT_LT(own_memory("VmRSS").value(), before + kBytes / 2);
  EXPECT_GE(own_memory("VmSize").value(), own_memory("VmRSS").value());
  ASSERT_TRUE(reset_memory_peak());
  EXPECT_LT(own_memory("VmHWM").value(), before + kBytes / 2);
}

TEST(OwnMemory, AFieldThatIsNotThereHasNoValue) {
  EXPECT_EQ(own_memory("VmHW"), std::nullopt) << "the beginning of a name is another name";
  EXPECT_EQ(own_memory("Name"), std::nullopt) << "no number";
}

}  // namespace
}  // namespace syslab
