#include "device/evict.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace syslab::device {
namespace {

// Ends that are no whole word are copied in another way.
TEST(Evict, ACopyPastCachesIsACopyWhereverItBeginsAndEnds) {
  constexpr std::size_t kRoom = 160;
  std::vector<std::byte> from(kRoom), before(kRoom, std::byte{0xEE});
  for (std::size_t i = 0; i < kRoom; ++i) from[i] = static_cast<std::byte>(i + 1);
  for (std::size_t at = 0; at < 20; ++at) {
    for (std::size_t bytes = 0; bytes < 120; ++bytes) {
      std::vector<std::byte> to = before, expected = before;
      copy_past_caches(to.data() + at, from.data() + 3, bytes);
      std::copy_n(from.begin() + 3, bytes, expected.begin() + static_cast<std::ptrdiff_t>(at));
      ASSERT_EQ(to, expected) << bytes << " bytes from byte " << at;
    }
  }
}

}  // namespace
}  // namespace syslab::device
