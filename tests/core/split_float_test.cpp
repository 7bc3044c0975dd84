#include "core/split_float.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace syslab {
namespace {

constexpr std::uint32_t kSign = 0x80000000U;

// Lower halves around every edge, and a walk through the others.
std::vector<std::uint32_t> lower_halves() {
  std::vector<std::uint32_t> halves{0,      1,      2,      0x3fff, 0x4000, 0x7ffe, 0x7fff,
                                    0x8000, 0x8001, 0x8002, 0xc000, 0xfffe, 0xffff};
  for (std::uint32_t half = 7; half < 0x10000; half += 521) halves.push_back(half);
  return halves;
}

// The signed sum of the header, in plain arithmetic.
std::uint32_t by_definition(SplitFloat halves) {
  const auto low = static_cast<std::int64_t>(static_cast<std::int16_t>(halves.low));
  return static_cast<std::uint32_t>(static_cast<std::int64_t>(halves.high) * 65536 + low);
}

// All upper halves beside lower ones on both sides of every edge. All 2³² patterns were walked once by hand: 8 s.
TEST(SplitFloat, EveryNumberComesBackToTheBitAndEveryNanAsOne) {
  std::int64_t wrong = 0;
  const std::vector<std::uint32_t> lows = lower_halves();
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const std::uint32_t low : lows) {
      const std::uint32_t bits = (upper << 16) | low;
      const SplitFloat halves = split_bits(bits);
      const bool is_nan = (bits & ~kSign) > 0x7f800000U;
      const std::uint32_t expected = is_nan ? ((bits & kSign) | 0x7fc00000U) : bits;
      const bool same_kind = is_nan == (static_cast<unsigned>(halves.high & 0x7fffU) > 0x7f80U);
      wrong += joined_bits(halves) == expected && by_definition(halves) == expected && same_kind ? 0 : 1;
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST(SplitFloat, TheUpperHalfIsTheNearestBf16AndTheEvenOneButAtTies) {
  std::int64_t wrong = 0, ties = 0;
  const std::vector<std::uint32_t> lows = lower_halves();
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const std::uint32_t low : lows) {
      const std::uint32_t bits = (upper << 16) | low;
      const float value = std::bit_cast<float>(bits);
      if (std::isnan(value)) continue;
      const std::uint16_t high = split(value).high, even = to_bf16(value).bits;
      if (high == even) continue;
      ++ties;
      wrong += low == 0x8000 && upper % 2 == 0 && high == even + 1 ? 0 : 1;  // the magnitude is what grows
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(ties, 2 * 0x7f80 / 2) << "of each sign, and each even upper half below infinity's";
}

TEST(SplitFloat, EdgesAreWhatTheHeaderSays) {
  const auto high_of = [](float value) { return to_float(bf16{split(value).high}); };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float sign : {1.0F, -1.0F}) {
    EXPECT_EQ(high_of(sign * kInfinity), sign * kInfinity);
    EXPECT_EQ(joined(split(sign * kInfinity)), sign * kInfinity);
    const float largest = sign * std::numeric_limits<float>::max();
    EXPECT_EQ(high_of(largest), sign * kInfinity) << "as it rounds to even";
    EXPECT_EQ(joined(split(largest)), largest);
    const float largest_bf16 = sign * to_float(bf16{0x7f7f});
    EXPECT_EQ(high_of(largest_bf16), largest_bf16);
    EXPECT_EQ(high_of(sign * std::bit_cast<float>(0x7f7f7fffU)), largest_bf16)
        << "the last float that is nearest to it";
    EXPECT_EQ(std::signbit(high_of(sign * 0.0F)), sign < 0);
    EXPECT_EQ(joined(split(sign * 0x1p-149F)), sign * 0x1p-149F);
    const float nan = std::copysign(std::bit_cast<float>(0x7fffffffU), sign);  // what a GPU makes: a carry away from 0
    EXPECT_TRUE(std::isnan(high_of(nan)) && std::isnan(joined(split(nan))));
    EXPECT_EQ(std::signbit(joined(split(nan))), sign < 0);
  }
}

}  // namespace
}  // namespace syslab
