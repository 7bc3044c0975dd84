// Element types of tensors, their storage, and conversion from float.
//
// Storage types f16 and bf16 are bit containers: arithmetic is done in float (or double) and rounded once on store, to
// nearest, ties to even (IEEE 754-2019, 4.3.1).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace syslab {

enum class DType : std::uint8_t { f64, f32, f16, bf16 };

// "fp64", "fp32", "fp16", "bf16": as in the command line, the store and the hand-out.
std::string_view to_string(DType dtype);
std::optional<DType> parse_dtype(std::string_view text);

constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 8;
    case DType::f32:
      return 4;
    case DType::f16:
    case DType::bf16:
      return 2;
  }
  return 0;
}

// Half the distance from 1 to the next number: the largest relative error of one rounding to nearest.
constexpr double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0x1p-53;
    case DType::f32:
      return 0x1p-24;
    case DType::f16:
      return 0x1p-11;
    case DType::bf16:
      return 0x1p-8;
  }
  return 1.0;
}

// The smallest positive normal number; below it rounding is absolute rather than relative.
constexpr double smallest_normal(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0x1p-1022;
    case DType::f32:
    case DType::bf16:
      return 0x1p-126;
    case DType::f16:
      return 0x1p-14;
  }
  return 0.0;
}

struct bf16 {
  std::uint16_t bits;
};

struct f16 {
  std::uint16_t bits;
};

constexpr float to_float(bf16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }

constexpr bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) {  // NaN: keep it one, whatever the low bits were
    return {static_cast<std::uint16_t>((bits >> 16) | 0x0040U)};
  }
  const std::uint32_t round = 0x7fffU + ((bits >> 16) & 1U);
  return {static_cast<std::uint16_t>((bits + round) >> 16)};
}

constexpr float to_float(f16 value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000U) << 16;
  const std::uint32_t exponent = (value.bits >> 10) & 0x1fU;
  const std::uint32_t mantissa = value.bits & 0x3ffU;
  if (exponent == 0x1fU) return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  // Zero or subnormal: mantissa counts units of 2^-24, exactly representable in float.
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
  return sign != 0 ? -magnitude : magnitude;
}

constexpr f16 to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return {static_cast<std::uint16_t>(sign | 0x7e00U)};
  if (magnitude >= 0x47800000U) return {static_cast<std::uint16_t>(sign | 0x7c00U)};  // ≥ 65536
  if (magnitude < 0x38800000U) {  // below 2^-14: subnormal, in units of 2^-24
    // Adding 0.5 aligns the unit in the last place with 2^-24, so the addition itself rounds to nearest even.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U))};
  }
  const std::uint32_t round = 0xfffU + ((magnitude >> 13) & 1U);
  return {static_cast<std::uint16_t>(sign | ((magnitude + round - 0x38000000U) >> 13))};
}

// One element of any type, read and written by value. Storage<float> and Storage<double> are the identity.
constexpr float to_float(float value) { return value; }
constexpr double to_double(double value) { return value; }
constexpr double to_double(float value) { return value; }
constexpr double to_double(f16 value) { return to_float(value); }
constexpr double to_double(bf16 value) { return to_float(value); }

template <typename T>
constexpr T from_float(float value) {
  return static_cast<T>(value);
}
template <>
constexpr f16 from_float<f16>(float value) {
  return to_f16(value);
}
template <>
constexpr bf16 from_float<bf16>(float value) {
  return to_bf16(value);
}

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<f16> {
  static constexpr DType value = DType::f16;
};
template <>
struct DTypeOf<bf16> {
  static constexpr DType value = DType::bf16;
};
template <typename T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

}  // namespace syslab
