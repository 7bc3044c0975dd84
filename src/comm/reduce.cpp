#include "comm/reduce.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/error.hpp"

// Compiled at -O3 (meson.build): plain loops that become vectors. `ivdep` is true: where `out` is a source, an element
// of it is read before it is written, and no other is.
namespace syslab::comm {
namespace {

// The partial results of this many elements stay in the first-level cache.
constexpr std::int64_t kBlock = 1024;

struct Sum {
  template <typename T>
  static T of(T before, T next) {
    return before + next;
  }
};
struct Max {
  template <typename T>
  static T of(T before, T next) {
    return next > before || next != next ? next : before;  // a NaN in `before` stays: comparisons with it are false
  }
};
struct Min {
  template <typename T>
  static T of(T before, T next) {
    return next < before || next != next ? next : before;
  }
};

template <typename Combine, typename T>
void reduce_two(T* out, const T* first, const T* second, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) out[i] = Combine::of(first[i], second[i]);
}

template <typename Combine, typename T>
void reduce_wide(T* out, std::span<const void* const> sources, std::int64_t count) {
  const auto* first = static_cast<const T*>(sources[0]);
  if (sources.size() == 1) {
    if (out != first) std::memcpy(out, first, static_cast<std::size_t>(count) * sizeof(T));
    return;
  }
  if (sources.size() == 2) return reduce_two<Combine>(out, first, static_cast<const T*>(sources[1]), count);
  std::array<T, kBlock> block;
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t length = std::min(kBlock, count - begin);
    reduce_two<Combine>(block.data(), first + begin, static_cast<const T*>(sources[1]) + begin, length);
    for (std::size_t rank = 2; rank + 1 < sources.size(); ++rank) {
      reduce_two<Combine>(block.data(), block.data(), static_cast<const T*>(sources[rank]) + begin, length);
    }
    reduce_two<Combine>(out + begin, block.data(), static_cast<const T*>(sources.back()) + begin, length);
  }
}

// The conversions of core/dtype.hpp without branches, for vectors; a test compares them on all bits.
float widen(bf16 value) { return to_float(value); }

float widen(f16 value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000U) << 16;
  const std::uint32_t magnitude = value.bits & 0x7fffU;
  // Shifted into a float's place the number is 2^-112 of itself, also where it is subnormal: the product is exact.
  const float finite = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
  const std::uint32_t special = 0x7f800000U | (magnitude << 13);
  return std::bit_cast<float>(sign | (magnitude >= 0x7c00U ? special : std::bit_cast<std::uint32_t>(finite)));
}

bf16 narrow(float value, bf16 /*type*/) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  const std::uint32_t nan = (bits >> 16) | 0x0040U;
  return {static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? nan : rounded)};
}

f16 narrow(float value, f16 /*type*/) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const std::uint32_t normal = (magnitude + 0xfffU + ((magnitude >> 13) & 1U) - 0x38000000U) >> 13;
  const float shifted = std::bit_cast<float>(magnitude) + 0.5F;  // its last place is 2^-24: the addition rounds
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U;
  std::uint32_t result = magnitude < 0x38800000U ? subnormal : normal;
  result = magnitude >= 0x47800000U ? 0x7c00U : result;
  result = magnitude > 0x7f800000U ? 0x7e00U : result;
  return {static_cast<std::uint16_t>(sign | result)};
}

template <typename Combine, typename T>
void reduce_half(T* out, std::span<const void* const> sources, std::int64_t count) {
  const auto* first = static_cast<const T*>(sources[0]);
  if (sources.size() == 1) {
    if (out != first) std::memcpy(out, first, static_cast<std::size_t>(count) * sizeof(T));
    return;
  }
  if (sources.size() == 2) {
    const auto* second = static_cast<const T*>(sources[1]);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) out[i] = narrow(Combine::of(widen(first[i]), widen(second[i])), T{});
    return;
  }
  std::array<float, kBlock> block;
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t length = std::min(kBlock, count - begin);
    for (std::int64_t i = 0; i < length; ++i) block[static_cast<std::size_t>(i)] = widen(first[begin + i]);
    for (std::size_t rank = 1; rank < sources.size(); ++rank) {
      const T* source = static_cast<const T*>(sources[rank]) + begin;
      float* partial = block.data();
#pragma GCC ivdep
      for (std::int64_t i = 0; i < length; ++i) partial[i] = Combine::of(partial[i], widen(source[i]));
    }
    for (std::int64_t i = 0; i < length; ++i) out[begin + i] = narrow(block[static_cast<std::size_t>(i)], T{});
  }
}

template <typename Combine>
void reduce(DType dtype, void* out, std::span<const void* const> sources, std::int64_t count) {
  switch (dtype) {
    case DType::f64:
      return reduce_wide<Combine>(static_cast<double*>(out), sources, count);
    case DType::f32:
      return reduce_wide<Combine>(static_cast<float*>(out), sources, count);
    case DType::f16:
      return reduce_half<Combine>(static_cast<f16*>(out), sources, count);
    case DType::bf16:
      return reduce_half<Combine>(static_cast<bf16*>(out), sources, count);
  }
}

}  // namespace

void reduce_in_order(std::span<const void* const> sources, void* to, DType dtype, std::int64_t count,
                     Reduction reduction) {
  if (sources.empty()) throw Error(ErrorKind::internal, "a reduction over no ranks has no result");
  switch (reduction) {
    case Reduction::sum:
      return reduce<Sum>(dtype, to, sources, count);
    case Reduction::max:
      return reduce<Max>(dtype, to, sources, count);
    case Reduction::min:
      return reduce<Min>(dtype, to, sources, count);
  }
}

}  // namespace syslab::comm
