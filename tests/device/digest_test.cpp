#include "device/digest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "device/queue.hpp"
#include "device/stream.hpp"

namespace syslab::device {
namespace {

using Bytes = std::vector<unsigned char>;

Bytes some_bytes(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<unsigned char>(i * i * 37 + i / 3 + 11);
  return bytes;
}

Digest of(const Bytes& bytes) { return digest(bytes.data(), bytes.size(), {}); }

// One sum of the header's text, byte by byte and from the last word to the first.
std::uint64_t plain_sum(const Bytes& bytes, std::uint64_t seed) {
  std::uint64_t sum = 0;
  for (std::size_t index = (bytes.size() + 7) / 8; index-- > 0;) {
    std::uint64_t word = 0;
    for (std::size_t at = std::min(bytes.size(), 8 * index + 8); at-- > 8 * index;) word = word << 8 | bytes[at];
    word += seed * (index + 1);
    word = (word ^ word >> 33) * 0xff51afd7ed558ccd;
    word = (word ^ word >> 33) * 0xc4ceb9fe1a85ec53;
    sum += word ^ word >> 33;
  }
  return sum;
}

TEST(MemoryDigest, IsTwoSumsOfMixedWordsAndTheLength) {
  for (const std::size_t count : {0, 1, 7, 8, 9, 15, 16, 31, 1000, 1003}) {
    const Bytes bytes = some_bytes(count);
    const Digest found = of(bytes);
    EXPECT_EQ(found.bytes, count);
    EXPECT_EQ(found.sums[0], plain_sum(bytes, 0x9e3779b97f4a7c15)) << count;
    EXPECT_EQ(found.sums[1], plain_sum(bytes, 0xd1b54a32d192ed03)) << count;
  }
}

TEST(MemoryDigest, SeesEveryFlippedBit) {
  Bytes bytes = some_bytes(43);
  const Digest before = of(bytes);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    const auto flip = static_cast<unsigned char>(1U << bit % 8);
    bytes[bit / 8] ^= flip;
    const Digest after = of(bytes);
    EXPECT_NE(after.sums[0], before.sums[0]) << bit;
    EXPECT_NE(after.sums[1], before.sums[1]) << bit;
    bytes[bit / 8] ^= flip;
  }
  EXPECT_EQ(of(bytes), before);
}

TEST(MemoryDigest, SeesWordsThatChangePlacesAndZerosBehindTheEnd) {
  const Bytes bytes = some_bytes(64);
  for (std::size_t word = 1; word < 8; ++word) {
    Bytes swapped = bytes;
    for (std::size_t i = 0; i < 8; ++i) std::swap(swapped[i], swapped[8 * word + i]);
    EXPECT_NE(of(swapped).sums[0], of(bytes).sums[0]) << word;
    EXPECT_NE(of(swapped).sums[1], of(bytes).sums[1]) << word;
  }
  Bytes shorter = some_bytes(61), longer = shorter;
  longer.push_back(0);
  EXPECT_NE(of(shorter), of(longer));
  EXPECT_NE(to_string(of(shorter)), to_string(of(longer)));
}

TEST(MemoryDigest, ReadsWhatTheStreamHasWrittenAtAnyAddress) {
  const OwnedStream queue = OwnedStream::queue();
  const Bytes bytes = some_bytes(29);
  Bytes there(32);
  enqueue(queue, [&] { std::ranges::copy(bytes, there.begin() + 3); });
  EXPECT_EQ(digest(there.data() + 3, bytes.size(), queue), of(bytes));
}

}  // namespace
}  // namespace syslab::device
