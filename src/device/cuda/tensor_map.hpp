// What the copy engine of compute capability 9.0 (TMA) needs to know of a tensor: where it lies, its sizes and strides,
// the box that one instruction copies, and how the box lies in shared memory. Made on the host, by the driver.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/tensor.hpp"

namespace syslab::device {

// CUDA's CUtensorMap, for headers that know nothing of CUDA. A kernel takes it by value, as a __grid_constant__.
struct alignas(128) TensorMap {
  std::array<std::byte, 128> data{};
};

// Chunks of 16 bytes of a row are exchanged by its place among 4 or 8 rows, so that neither rows nor columns of a tile
// meet in one bank: rows in shared memory are 64 or 128 bytes, the width of the box.
enum class Swizzle { bytes_64, bytes_128 };

// A box of `rows` × the swizzle's width of a tensor of 16-bit elements (batch, head, row, column), unit last stride;
// coordinates count from the last dimension. Address and strides are multiples of 16 bytes, strides of dimensions
// longer than 1 positive. Error(device) when the driver is too old or refuses.
TensorMap make_tensor_map(const ConstTensorView& view, int rows, Swizzle swizzle);

}  // namespace syslab::device
