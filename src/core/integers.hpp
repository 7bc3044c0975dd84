// Division with rounding up, for non-negative integers.
#pragma once

#include <concepts>
#include <type_traits>

namespace syslab {

// How many pieces of `size` cover `length`.
template <std::integral T>
constexpr T ceil_div(T length, std::type_identity_t<T> size) {
  return (length + size - 1) / size;
}

// The smallest multiple of `unit` that is at least `value`.
template <std::integral T>
constexpr T round_up(T value, std::type_identity_t<T> unit) {
  return ceil_div(value, unit) * unit;
}

}  // namespace syslab
