#include "core/files/mac.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace syslab {
namespace {

Key counting() {
  Key key;
  std::iota(key.begin(), key.end(), std::uint8_t{0});
  return key;
}

// As Python's hmac module has it for the key 00 01 … 1f.
TEST(Mac, IsHmacOfSha256) {
  constexpr Mac expected{0x09, 0x98, 0x05, 0xf4, 0xac, 0x31, 0x07, 0x86, 0x96, 0x85, 0x65,
                         0xc0, 0x98, 0xdb, 0x51, 0x5c, 0xc5, 0x08, 0x62, 0xb4, 0x20, 0xae,
                         0x31, 0xe2, 0x02, 0x38, 0x31, 0x23, 0x44, 0xbe, 0xd3, 0x6a};
  EXPECT_EQ(mac_of(counting(), {"what do ya want ", "for nothing?"}), expected);
}

TEST(Mac, IsTheSameForTheSameBytesOnly) {
  const Mac mac = mac_of(counting(), {"text"});
  std::string received(bytes_of(mac));
  EXPECT_TRUE(same(mac, received));
  EXPECT_FALSE(same(mac, received.substr(1)));
  EXPECT_FALSE(same(mac, received + '\0'));
  received.back() ^= 1;
  EXPECT_FALSE(same(mac, received));
}

TEST(Mac, DependsOnTheKeyAndOnItsPurpose) {
  EXPECT_NE(mac_of(counting(), {"text"}), mac_of(derived(counting(), "purpose"), {"text"}));
  EXPECT_NE(derived(counting(), "one"), derived(counting(), "other"));
  EXPECT_NE(random_key(), random_key());
}

}  // namespace
}  // namespace syslab
