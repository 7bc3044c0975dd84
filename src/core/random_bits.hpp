// From counter to bits and from bits to value: shared by core/random.cpp and the GPU's fill kernel, so that an input
// has the same bits wherever it is drawn. Integer arithmetic, one exact conversion and one exact multiplication: no
// libm call and no sum of products that a compiler could contract.
#pragma once

#include <bit>
#include <cstdint>

namespace syslab::random_bits {

inline constexpr int kSegmentBits = 6;    // of the quantile table: 64 segments an octave
inline constexpr int kOctaveBottom = 16;  // below t = 2^16 the table is uniform
inline constexpr int kTableSize = (16 << kSegmentBits) + 1;
inline constexpr float kNormalUnit = 0x1p-28F;  // of an entry

// One of the ten rounds of Philox4x32-10 (source in core/random.hpp).
constexpr void philox_round(std::uint32_t& c0, std::uint32_t& c1, std::uint32_t& c2, std::uint32_t& c3,
                            std::uint32_t key0, std::uint32_t key1) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  const std::uint64_t product0 = kMultiplier0 * c0, product1 = kMultiplier1 * c2;
  c0 = static_cast<std::uint32_t>(product1 >> 32) ^ c1 ^ key0;
  c1 = static_cast<std::uint32_t>(product1);
  c2 = static_cast<std::uint32_t>(product0 >> 32) ^ c3 ^ key1;
  c3 = static_cast<std::uint32_t>(product0);
}

// Calls round(key0, key1) with the keys of the ten rounds.
template <typename Round>
constexpr void philox_rounds(std::uint32_t key0, std::uint32_t key1, Round round) {
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  constexpr int kRounds = 10;
  for (int i = 0; i < kRounds; ++i) {
    round(key0, key1);
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
}

// One block: the counter becomes the bits.
constexpr void philox4x32(std::uint32_t (&counter)[4], std::uint32_t key0, std::uint32_t key1) {
  philox_rounds(key0, key1, [&counter](std::uint32_t a, std::uint32_t b) {
    philox_round(counter[0], counter[1], counter[2], counter[3], a, b);
  });
}

// `table` has kTableSize entries: core/normal_table.inc. No branch and no call, so that a compiler may draw several at
// once.
constexpr float normal(std::uint32_t bits, const std::int32_t* table) {
  const std::uint32_t t = bits & 0x7fffffffU;
  // How many bits t takes, from the exponent of a float. Without the bit behind the first one nothing rounds up to the
  // next.
  const auto above = static_cast<float>(static_cast<std::int32_t>(t & ~(t >> 1)));
  const int width = static_cast<int>(std::bit_cast<std::uint32_t>(above) >> 23) - 126;  // of 0 it is negative
  // Index of the octave (0 for the uniform part below all octaves), and the low bits within one segment.
  const int octave = width > kOctaveBottom ? width - kOctaveBottom : 0;
  const int within_bits = kOctaveBottom - kSegmentBits + (octave > 0 ? octave - 1 : 0);
  const std::uint32_t segment = (t >> within_bits) & ((1U << kSegmentBits) - 1);
  const std::uint32_t node = (static_cast<std::uint32_t>(octave) << kSegmentBits) + segment;
  const std::uint32_t within = t & ((1U << within_bits) - 1);
  const std::int32_t left = table[node];
  const auto drop = static_cast<std::uint32_t>(left - table[node + 1]);  // entries fall
  const auto part = static_cast<std::int32_t>((static_cast<std::uint64_t>(drop) * within) >> within_bits);
  // int32 → float rounds to nearest even on every machine; the multiplication is exact.
  const float z = static_cast<float>(left - part) * kNormalUnit;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(z) ^ (bits & 0x80000000U));
}

// In [0, 1): the top 24 bits, exact in float.
constexpr float uniform(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24F; }

// A sawtooth of period 1024 in [-1/2, 1/2): the value shows the position. Exact.
constexpr float ramp(std::uint64_t position) { return static_cast<float>(position % 1024) * 0x1p-10F - 0.5F; }

}  // namespace syslab::random_bits
