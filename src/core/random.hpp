// Counter-based random numbers: every input of every case is a pure function of a key and a position, so any element
// can be drawn again by any thread, on the CPU or the GPU, bit for bit.
//
// Generator: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11).
// From bits to value there is no libm call and no multiply-add that a compiler could contract: normals interpolate one
// shared table of quantiles in integers.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/tensor.hpp"

namespace syslab {

// One block of Philox4x32-10: 128 bits from a 128-bit counter and a 64-bit key.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

// A stream of numbers. The value at position i does not depend on earlier reads.
class RandomStream {
 public:
  explicit RandomStream(std::uint64_t key) : key_(key) {}
  // Key = SHA-256 over the four parts, so that streams of different cases and names are unrelated.
  static RandomStream derive(std::uint64_t root_seed, std::string_view experiment, std::string_view case_uid,
                             std::string_view stream);

  std::uint64_t key() const { return key_; }
  std::uint32_t bits(std::uint64_t position) const;
  // In [0, 1): the top 24 bits, exact in float.
  float uniform(std::uint64_t position) const;
  // Standard normal to within the table's resolution: quantiles within 2e-5, |z| < 5.5.
  float normal(std::uint64_t position) const;

 private:
  std::uint64_t key_;
};

// What inputs look like. `normal` is N(0, scale²); the others are for study and are marked in the record.
enum class Distribution { normal, uniform, zeros, ramp };

// Fills `out` (any dtype, any strides) so that the element with row-major index i holds number first + i of `stream`.
// Values are drawn in float, multiplied by `scale`, and rounded once to the dtype.
void fill(const TensorView& out, const RandomStream& stream, Distribution distribution, float scale = 1.0F,
          std::uint64_t first = 0);

}  // namespace syslab
