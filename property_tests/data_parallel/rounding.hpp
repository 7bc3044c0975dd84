// How far rounding in a layer's dtype may carry what a right class computes.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/dtype.hpp"

namespace syslab::data_parallel {

// What a number loses at most: `unit` of its size, and `smallest` besides, however small it is.
struct Rounding {
  double unit = 0, smallest = 0;
  double of(double size) const { return unit * size + smallest; }
};

// Below the smallest normal number, of fp16 2^−14, rounding is absolute.
constexpr Rounding rounding_in(DType dtype) {
  return {.unit = unit_roundoff(dtype), .smallest = unit_roundoff(dtype) * smallest_normal(dtype)};
}

// A number on its way, the sizes of its terms, and how far from it a right class may be.
struct Bounded {
  double value = 0, size = 0, error = 0;
};

// A number that is read in the dtype.
inline Bounded as_read(double value, double error, const Rounding& by) {
  return {value, std::abs(value), error + by.of(std::abs(value))};
}

// Adds a weight's product with x to an output. Both factors round, and so do their product and each of `terms` sums.
inline void add_product(Bounded& y, double weight, double error, double x, std::int64_t terms, const Rounding& by) {
  const double size = std::abs(weight * x);
  y.value += weight * x;
  y.size += size;
  y.error += (error + by.smallest) * std::abs(x) + by.smallest * (std::abs(weight) + 2) +
             static_cast<double>(terms + 3) * by.unit * size;
}

// Adds to a weight's gradient that of an output times an input, which rounds as their product does.
inline void add_to_gradient(Bounded& sum, const Bounded& of_output, double x, const Rounding& by) {
  sum.value += of_output.value * x;
  sum.size += of_output.size * std::abs(x);
  sum.error += (of_output.error + 3 * by.unit * of_output.size) * std::abs(x) + by.smallest * (1 + of_output.size);
}

// Of the mean over ranks, whose sum may be made in the dtype and in any order. A class may scale before and after it,
// and adds up two uses.
inline double error_of_mean(const Bounded& sum, int ranks, const Rounding& by) {
  const double roundings = ranks + 6;
  return (sum.error + roundings * by.unit * sum.size) / ranks + roundings * by.smallest;
}

}  // namespace syslab::data_parallel
