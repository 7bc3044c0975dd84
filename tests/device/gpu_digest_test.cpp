// A GPU's digest is the host's, of the same bytes.
#include <numeric>

#include "device/digest.hpp"
#include "tests/device/gpu_fixture.hpp"

namespace syslab::device {
namespace {

class GpuDigest : public GpuTest {};

TEST_F(GpuDigest, IsTheHostsForAnyLengthAtAnyAddress) {
  constexpr std::size_t kMost = 40'000'019;  // more than one turn of every thread
  std::vector<unsigned char> bytes(kMost + 16);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 0x9e3779b97f4a7c15ULL >> 43);
  const Buffer there = to_gpu(bytes);
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{23}, std::size_t{4099},
                                  std::size_t{1'000'000}, kMost}) {
    for (const std::size_t offset : {0, 1, 2, 4, 8, 15}) {
      EXPECT_EQ(to_string(digest(there.as<unsigned char>() + offset, count, stream)),
                to_string(digest(bytes.data() + offset, count, {})))
          << count << " bytes at " << offset;
    }
  }
}

TEST_F(GpuDigest, SeesAFlippedBitWhereverItIs) {
  std::vector<unsigned char> bytes(100'003);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(0));
  const Digest before = digest(to_gpu(bytes).data(), bytes.size(), stream);
  for (const std::size_t at : {std::size_t{0}, std::size_t{50'001}, bytes.size() - 4, bytes.size() - 1}) {
    bytes[at] ^= 0x80;
    EXPECT_NE(digest(to_gpu(bytes).data(), bytes.size(), stream), before) << at;
    bytes[at] ^= 0x80;
  }
  EXPECT_EQ(digest(to_gpu(bytes).data(), bytes.size(), stream), before);
}

}  // namespace
}  // namespace syslab::device
