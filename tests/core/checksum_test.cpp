#include "core/files/checksum.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace syslab {
namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

// As Python's hashlib.blake2b(…, digest_size=16) has it.
TEST(Checksum, IsBlake2bOf128Bits) {
  EXPECT_EQ(Checksum().hex(), "cae66941d9efbd404e4d88758ea67670");
  Checksum checksum;
  checksum.update(bytes("a"));
  checksum.update({});
  checksum.update(bytes("bc"));
  EXPECT_EQ(checksum.hex(), "cf4ab791c62b8d2b2109c90275287816");
}

}  // namespace
}  // namespace syslab
