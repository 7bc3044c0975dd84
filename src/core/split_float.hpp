// A float in two 16-bit halves. The upper half is a bf16, which matrix products read as the weight; the optimizer joins
// both to get the full float. 4 bytes instead of 6 for a float with a bf16 copy.
//
//   bits of the float = (high << 16) + low       low: signed, so that high is the nearest bf16
//
// high is (bits + 0x8000) >> 16: rounded to nearest, ties away from zero. The usual ties to even could not be inverted:
// 65,537 floats round to an even bf16 and 65,535 to an odd one, and low tells 65,536 apart. The two differ where the
// lower half is 0x8000 to the bit and the upper one even, for one of 131,072 floats, by a bf16's ulp.
//
// Both directions are exact for every number, including subnormals and zeros of both signs, and for infinities. Floats
// beyond the largest bf16 by half an ulp or more have an infinite high part, as with ties to even, and are restored
// exactly. A NaN becomes the quiet NaN of its sign, so that its high part is a NaN: the carry would turn some into
// zeros.
#pragma once

#include <bit>
#include <cstdint>

#include "core/dtype.hpp"

namespace syslab {

struct SplitFloat {
  std::uint16_t high = 0;  // of a bf16
  std::uint16_t low = 0;   // of a two's-complement number
};

// On bit patterns, so usable in kernels.
constexpr SplitFloat split_bits(std::uint32_t bits) {
  if ((bits & 0x7fffffffU) > 0x7f800000U) bits = (bits & 0x80000000U) | 0x7fc00000U;
  return {static_cast<std::uint16_t>((bits + 0x8000U) >> 16), static_cast<std::uint16_t>(bits)};
}
// The carry into high was 1 if low's highest bit is set; as low's sign bit, it subtracts that carry again.
constexpr std::uint32_t joined_bits(SplitFloat halves) {
  const std::uint32_t high = halves.high, low = halves.low;
  return ((high - (low >> 15)) << 16) | low;
}

constexpr SplitFloat split(float value) { return split_bits(std::bit_cast<std::uint32_t>(value)); }
constexpr float joined(SplitFloat halves) { return std::bit_cast<float>(joined_bits(halves)); }

// Tensors have no integer dtype: a tensor of lower halves uses this one, and is never read as numbers.
inline constexpr DType kLowHalf = DType::bf16;

}  // namespace syslab
