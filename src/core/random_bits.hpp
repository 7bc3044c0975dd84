// From counter to bits and from bits to value: shared by core/random.cpp and the GPU's fill kernel, so that an input
// has the same bits wherever it is drawn. Integer arithmetic, one exact conversion and one exact multiplication: no
// libm call and no sum of products that a compiler could contract.
#pragma once

#include <array>
#include <cstdint>

namespace syslab::random_bits {

inline constexpr int kSegmentBits = 6;    // of the quantile table: 64 segments an octave
inline constexpr int kOctaveBottom = 16;  // below t = 2^16 the table is uniform
inline constexpr int kTableSize = (16 << kSegmentBits) + 1;
inline constexpr float kNormalUnit = 0x1p-28F;  // of an entry

// One block of Philox4x32-10 (source in core/random.hpp): the counter becomes the bits.
constexpr void philox4x32(std::uint32_t (&counter)[4], std::uint32_t key0, std::uint32_t key1) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter[0] = static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key0;
    counter[1] = static_cast<std::uint32_t>(product1);
    counter[2] = static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key1;
    counter[3] = static_cast<std::uint32_t>(product0);
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
}

// Bits needed to write `value`: std::bit_width, which GPU compilers may lack.
constexpr int bit_width(std::uint32_t value) {
  int width = 0;
  for (int step = 16; step > 0; step /= 2) {
    const int taken = value >> step != 0 ? step : 0;  // no branch: half of them would be foretold wrongly
    value >>= taken;
    width += taken;
  }
  return width + (value != 0 ? 1 : 0);
}

// `table` has kTableSize entries: core/normal_table.inc.
constexpr float normal(std::uint32_t bits, const std::int32_t* table) {
  const std::uint32_t t = bits & 0x7fffffffU;
  // Index of the octave (0 for the uniform part below all octaves), and the low bits within one segment.
  const int octave = t >> kOctaveBottom == 0 ? 0 : bit_width(t) - kOctaveBottom;
  const int within_bits = (octave == 0 ? kOctaveBottom : kOctaveBottom + octave - 1) - kSegmentBits;
  const std::uint32_t segment = (t >> within_bits) & ((1U << kSegmentBits) - 1);
  const std::uint32_t node = (static_cast<std::uint32_t>(octave) << kSegmentBits) + segment;
  const std::int64_t within = t & ((1U << within_bits) - 1);
  const std::int64_t left = table[node];
  const std::int64_t drop = left - table[node + 1];  // entries fall
  const auto magnitude = static_cast<std::int32_t>(left - ((drop * within) >> within_bits));
  // int32 → float rounds to nearest even on every machine; the multiplication is exact.
  const float z = static_cast<float>(magnitude) * kNormalUnit;
  return (bits >> 31) != 0 ? -z : z;
}

// In [0, 1): the top 24 bits, exact in float.
constexpr float uniform(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24F; }

// A sawtooth of period 1024 in [-1/2, 1/2): the value shows the position. Exact.
constexpr float ramp(std::uint64_t position) { return static_cast<float>(position % 1024) * 0x1p-10F - 0.5F; }

}  // namespace syslab::random_bits
