// A float in two halves of 16 bits, of which the upper one is a bf16 by itself: what matrix products read of a weight,
// where the lower one is what an optimizer needs besides to have the whole of it. 4 bytes instead of the 6 of a float
// with a bf16 copy.
//
//   bits of the float = (high << 16) + low       low: signed, so that high is the nearest bf16
//
// high is (bits + 0x8000) >> 16: rounded to nearest, ties away from zero. Ties to even, as everybody else rounds, could
// not be taken back: 65,537 floats round to an even bf16 and 65,535 to an odd one, and low tells 65,536 apart. The two
// differ where the lower half is 0x8000 to the bit and the upper one even, for one of 131,072 floats, by a bf16's ulp.
//
// Both ways are exact for every number, subnormal ones and zeros of both signs among them, and for infinities. Floats
// beyond the largest bf16 by half an ulp or more have an infinite high part, as they have rounded to even, and come
// back whole. A NaN becomes the quiet one of its sign, whose high part is a NaN: the carry would make zeros of some.
#pragma once

#include <bit>
#include <cstdint>

#include "core/dtype.hpp"

namespace syslab {

struct SplitFloat {
  std::uint16_t high = 0;  // of a bf16
  std::uint16_t low = 0;   // of a two's-complement number
};

// By bits, for kernels too.
constexpr SplitFloat split_bits(std::uint32_t bits) {
  if ((bits & 0x7fffffffU) > 0x7f800000U) bits = (bits & 0x80000000U) | 0x7fc00000U;
  return {static_cast<std::uint16_t>((bits + 0x8000U) >> 16), static_cast<std::uint16_t>(bits)};
}
// The carry into high was 1 where low's highest bit is: it is subtracted by the sign that this bit is.
constexpr std::uint32_t joined_bits(SplitFloat halves) {
  const std::uint32_t high = halves.high, low = halves.low;
  return ((high - (low >> 15)) << 16) | low;
}

constexpr SplitFloat split(float value) { return split_bits(std::bit_cast<std::uint32_t>(value)); }
constexpr float joined(SplitFloat halves) { return std::bit_cast<float>(joined_bits(halves)); }

// Tensors know no integers: one of lower halves has this dtype, and nobody reads it as numbers.
inline constexpr DType kLowHalf = DType::bf16;

}  // namespace syslab
