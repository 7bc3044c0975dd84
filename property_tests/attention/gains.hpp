// How much longer or smaller than usual V and dO are drawn. Powers of two.
#pragma once

#include "core/dtype.hpp"

namespace syslab::attention {

// Outputs up to some thousands: fp16 ends at 65504.
inline constexpr float kLongValues = 512.0F;

// V and dO so small that no |x| is above 1e-3, where an absolute tolerance of 1e-2 would hide everything: 2⁻¹³ is the
// largest power of two with 8 deviations below that. In fp16 2⁻⁸.
//
// Who is within 1e-2·(1 + |x|) of numbers of order one is within 1e-2·(g + |g·x|) where V or dO is g times as long. O
// is linear in V, dV in dO, dQ and dK in both, and P does not depend on them. A power of two changes no significand,
// so every rounding that is relative becomes g times as large, and only underflow does not:
// - fp32 and bf16 end at 2⁻¹²⁶: a sum of 2¹⁶ products loses at most 2⁻¹¹⁰, far below 1e-2·2⁻¹³.
// - fp16 rounds by up to t = 2⁻²⁵ below 2⁻¹⁴. In O and dV that is one rounding of each result, since P̃ has no g in it.
//   dQ and dK sum n casts of dS: less than 4·t·√n·|K|, with the root of n for roundings that are independent, which is
//   2⁻¹⁷ for n = 2¹² and |K| = 1, and 1e-2·2⁻⁸ is 2⁻¹⁴·⁶. An accumulator in fp16, whose n roundings have a deviation of
//   t·√(n/3) together, stays below that, too. Of V and dO themselves 1 % are subnormal. They are drawn as what fp16
//   has there. With 2⁻¹³ the casts would be as large as the tolerance: loss scaling is for that.
// Derived bounds have terms for underflow (error_bound.hpp) and hold at any size.
inline constexpr float kSmallValues = 0x1p-13F, kSmallInF16 = 0x1p-8F;

inline float small_gain(DType dtype) { return dtype == DType::f16 ? kSmallInF16 : kSmallValues; }

}  // namespace syslab::attention
