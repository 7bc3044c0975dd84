// Tensors as a caller of the C interface holds them.
#pragma once

#include <dlpack/dlpack.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "core/tensor.hpp"

namespace syslab::capi {

// Memory, shape and strides with a DLTensor over them. Not copyable: the DLTensor points inside.
class CTensor {
 public:
  CTensor(DType dtype, std::vector<std::int64_t> shape) : CTensor(dtype, shape, row_major(shape)) {}
  CTensor(DType dtype, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides)
      : shape_(std::move(shape)), strides_(std::move(strides)) {
    std::int64_t last = 0;
    for (std::size_t dim = 0; dim < shape_.size(); ++dim) last += (shape_[dim] - 1) * strides_[dim];
    bytes_.assign(static_cast<std::size_t>(last + 1) * size_of(dtype), std::byte{0xa5});
    tensor.data = bytes_.data();
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<int>(shape_.size());
    tensor.dtype = {static_cast<std::uint8_t>(dtype == DType::bf16 ? kDLBfloat : kDLFloat),
                    static_cast<std::uint8_t>(8 * size_of(dtype)), 1};
    tensor.shape = shape_.data();
    tensor.strides = strides_.data();
    tensor.byte_offset = 0;
    dtype_ = dtype;
  }
  CTensor(const CTensor&) = delete;
  CTensor& operator=(const CTensor&) = delete;

  static std::vector<std::int64_t> row_major(const std::vector<std::int64_t>& shape) {
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t dim = shape.size() - 1; dim > 0; --dim) strides[dim - 1] = strides[dim] * shape[dim];
    return strides;
  }

  CTensor& randomize(unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (std::size_t at = 0; at < bytes_.size() / size_of(dtype_); ++at) {
      const float value = normal(random);
      if (dtype_ == DType::f32) reinterpret_cast<float*>(bytes_.data())[at] = value;
      if (dtype_ == DType::f16) reinterpret_cast<f16*>(bytes_.data())[at] = to_f16(value);
      if (dtype_ == DType::bf16) reinterpret_cast<bf16*>(bytes_.data())[at] = to_bf16(value);
    }
    return *this;
  }

  // The elements, row-major by index.
  std::vector<double> values() const {
    Strides strides{};
    std::copy(strides_.begin(), strides_.end(), strides.begin());
    return to_doubles(ConstTensorView(bytes_.data(), dtype_, Shape(std::span<const std::int64_t>(shape_)), strides));
  }

  DLTensor* get() { return &tensor; }
  std::vector<std::byte>& bytes() { return bytes_; }

  DLTensor tensor{};

 private:
  std::vector<std::int64_t> shape_, strides_;
  std::vector<std::byte> bytes_;
  DType dtype_;
};

}  // namespace syslab::capi
