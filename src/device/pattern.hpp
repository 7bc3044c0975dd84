// Patterns in memory, written and counted where the memory is: poison for outputs not yet written, guard words for
// memory that must not be written.
//
//   fill_pattern(out, {.base = 0x7fd3594c}, sizeof(float), 0, count, stream);
//   const Differences found = count_differences(out, {.base = 0x7fd3594c}, sizeof(float), 0, count, stream);
//   const std::int64_t unwritten = count - found.words;
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/dtype.hpp"
#include "device/device.hpp"

namespace syslab::device {

// A word for every position: `base` everywhere, or with a payload, base | (1 + hash(position) mod payload), so that one
// word copied over another shows.
struct Pattern {
  std::uint64_t base = 0, payload = 0;
};

// Multiplying by an odd constant spreads neighbouring positions over the payloads (Knuth's multiplicative hash).
constexpr std::uint64_t word_of(const Pattern& pattern, std::int64_t position) {
  if (pattern.payload == 0) return pattern.base;
  const std::uint64_t hash = (static_cast<std::uint64_t>(position) * 0x9e37'79b9'7f4a'7c15ULL) >> 13;
  return pattern.base | (1 + hash % pattern.payload);
}

// The exponent bits: if all are set and the mantissa is not zero, the number is a NaN.
constexpr std::uint64_t exponent_bits(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0x7ff0'0000'0000'0000;
    case DType::f32:
      return 0x7f80'0000;
    case DType::f16:
      return 0x7c00;
    case DType::bf16:
      return 0x7f80;
  }
  return 0;
}

// Writes `count` words of `width` bytes (1, 2, 4 or 8; `at` is aligned to it), the low bytes of word_of(pattern,
// first_position + i), in the order of `stream`.
void fill_pattern(void* at, const Pattern& pattern, std::size_t width, std::int64_t first_position, std::int64_t count,
                  Stream stream);

struct Differences {
  std::int64_t words = 0;              // that differ from the pattern
  std::int64_t first = -1, last = -1;  // indices in [0, count); -1: none
};
// Compares the same words and waits for the answer.
Differences count_differences(const void* at, const Pattern& pattern, std::size_t width, std::int64_t first_position,
                              std::int64_t count, Stream stream);

// Elements that are NaN, in contiguous memory. Waits for the answer.
std::int64_t count_nans(const void* at, DType dtype, std::int64_t count, Stream stream);

struct Elements {
  const void* at = nullptr;
  DType dtype = DType::f32;
  std::int64_t count = 0;
};
// The same of many tensors with one wait: which of them, the first, has a NaN; -1: none.
std::int64_t first_with_nans(std::span<const Elements> tensors, Stream stream);

}  // namespace syslab::device
