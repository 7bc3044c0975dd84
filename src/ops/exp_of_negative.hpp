// e^x for x ≤ 0 in plain arithmetic, so that loops vectorise without a vector math library.
#pragma once

#include <bit>
#include <cstdint>

namespace syslab::ops {

// Within 2 units in the last place of fp32; 0 if e^x is below the normal numbers; NaN stays NaN. The formula also holds
// for x up to 88; callers pass values slightly above 0 because of rounded sums.
//
// x = n·ln 2 + r with |r| ≤ ln(2)/2 and n the nearest integer, found by an addition that rounds off the fraction and
// leaves n in the sum's low bits. e^r = 1 + r + r²·q(r), q of degree 4 and minimax for the relative error of e^r (0.05
// units, by Lawson's iteration).
inline float exp_of_negative(float x) {
  constexpr float kLowest = -87.0F, kRounder = 0x1.8p23F;
  const float clamped = x < kLowest ? kLowest : x;
  const float shifted = clamped * 0x1.715476p+0F + kRounder;  // 1/ln 2
  const float n = shifted - kRounder;
  const float r = (clamped - n * 0.693359375F) - n * -0x1.bd0106p-13F;  // ln 2 in two parts, the first with few bits so
                                                                        // that n times it is exact
  float q = 0x1.6a23d0p-10F;
  q = q * r + 0x1.123a20p-7F;
  q = q * r + 0x1.5558f2p-5F;
  q = q * r + 0x1.555492p-3F;
  q = q * r + 0x1.fffffcp-2F;
  const float power = (q * r * r + r) + 1.0F;
  const auto exponent = static_cast<std::uint32_t>(std::bit_cast<std::int32_t>(shifted)) << 23;
  const float value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(power) + exponent);
  return x < kLowest ? 0.0F : x == x ? value : x;  // a NaN's bits would be taken for an exponent
}

}  // namespace syslab::ops
