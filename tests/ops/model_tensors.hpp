// Tensors of any dtype on the host for tests of the model's operators: filled with normal numbers, poisoned, compared.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/split_float.hpp"
#include "core/tensor.hpp"

namespace syslab::ops {

// Owns the memory of a tensor with any strides, all of it 0xff (a NaN in every dtype) until somebody writes.
struct Tensor {
  DType dtype = DType::f32;
  Shape shape;
  Strides strides{};
  std::vector<std::byte> bytes;

  Tensor() = default;
  Tensor(DType dtype_, const Shape& shape_) : Tensor(dtype_, shape_, contiguous_strides(shape_)) {}
  Tensor(DType dtype_, const Shape& shape_, const Strides& strides_)
      : dtype(dtype_),
        shape(shape_),
        strides(strides_),
        bytes(static_cast<std::size_t>(extent_elements(shape_, strides_)) * size_of(dtype_), std::byte{0xff}) {}

  // A matrix whose rows lie `gap` elements apart.
  static Tensor matrix(DType dtype, std::int64_t rows, std::int64_t dim, std::int64_t gap = 0) {
    return Tensor(dtype, {rows, dim}, {dim + gap, 1});
  }

  TensorView view() { return TensorView(bytes.data(), dtype, shape, strides); }
  ConstTensorView view() const { return ConstTensorView(bytes.data(), dtype, shape, strides); }
  std::vector<double> values() const { return to_doubles(view()); }

  // Where the element of row-major index `i` lies.
  std::int64_t offset_of(std::int64_t i) const {
    std::int64_t offset = 0;
    for (int dim = shape.rank() - 1; dim >= 0; --dim) {
      offset += i % shape[dim] * strides[static_cast<std::size_t>(dim)];
      i /= shape[dim];
    }
    return offset;
  }

  // Sets the element of row-major index `i`, rounded once.
  void set(std::int64_t i, double value) {
    std::byte* at = bytes.data() + static_cast<std::size_t>(offset_of(i)) * size_of(dtype);
    const auto put = [at](auto element) { std::memcpy(at, &element, sizeof(element)); };
    switch (dtype) {
      case DType::f64:
        return put(value);
      case DType::f32:
        return put(static_cast<float>(value));
      case DType::f16:
        return put(to_f16(static_cast<float>(value)));
      case DType::bf16:
        return put(to_bf16(static_cast<float>(value)));
    }
  }
  void set_all(const std::vector<double>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) set(static_cast<std::int64_t>(i), values[i]);
  }
  Tensor& fill_normal(std::mt19937& random, double scale = 1) {
    std::normal_distribution<double> normal(0, scale);
    for (std::int64_t i = 0; i < shape.elements(); ++i) set(i, normal(random));
    return *this;
  }

  // What lies between the elements is as it was at first.
  bool gaps_are_untouched() const {
    std::vector<bool> mine(bytes.size(), false);
    for (std::int64_t i = 0; i < shape.elements(); ++i) {
      const auto at = static_cast<std::size_t>(offset_of(i)) * size_of(dtype);
      for (std::size_t byte = at; byte < at + size_of(dtype); ++byte) mine[byte] = true;
    }
    for (std::size_t byte = 0; byte < bytes.size(); ++byte) {
      if (!mine[byte] && bytes[byte] != std::byte{0xff}) return false;
    }
    return true;
  }
};

// A contiguous fp32 tensor in halves.
struct Halves {
  Tensor high, low;

  explicit Halves(const Tensor& whole) : high(DType::bf16, whole.shape), low(kLowHalf, whole.shape) {
    for (std::size_t i = 0; 4 * i < whole.bytes.size(); ++i) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, whole.bytes.data() + 4 * i, 4);
      const SplitFloat halves = split_bits(bits);
      std::memcpy(high.bytes.data() + 2 * i, &halves.high, 2);
      std::memcpy(low.bytes.data() + 2 * i, &halves.low, 2);
    }
  }
  // The bytes of the whole tensor.
  std::vector<std::byte> joined() const {
    std::vector<std::byte> whole(2 * high.bytes.size());
    for (std::size_t i = 0; 4 * i < whole.size(); ++i) {
      SplitFloat halves;
      std::memcpy(&halves.high, high.bytes.data() + 2 * i, 2);
      std::memcpy(&halves.low, low.bytes.data() + 2 * i, 2);
      const std::uint32_t bits = joined_bits(halves);
      std::memcpy(whole.data() + 4 * i, &bits, 4);
    }
    return whole;
  }
};

// Largest error over its bound; infinite where a number is missing.
inline double worst_ratio(const std::vector<double>& found, const std::vector<double>& value,
                          const std::vector<double>& tolerance) {
  EXPECT_EQ(found.size(), value.size());
  double worst = 0;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const double ratio = std::abs(found[i] - value[i]) / tolerance[tolerance.size() == 1 ? 0 : i];
    worst = std::isnan(ratio) ? INFINITY : std::max(worst, ratio);
  }
  return worst;
}

// d(loss)/d(element i) by a central difference; `loss` reads the tensor anew.
template <typename Loss>
double difference(Tensor& tensor, std::size_t i, double step, const Loss& loss) {
  const auto at = static_cast<std::int64_t>(i);
  const double value = tensor.values()[i];
  tensor.set(at, value + step);
  const double above = loss();
  tensor.set(at, value - step);
  const double below = loss();
  tensor.set(at, value);
  return (above - below) / (2 * step);
}

// What an Error(usage) says; "no error" if none is thrown.
template <typename Call>
std::string usage_error(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "no error";
}

}  // namespace syslab::ops
