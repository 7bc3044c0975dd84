// A tensor that owns its memory, on the device of the stream that it was created on.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include "core/tensor.hpp"
#include "device/buffer.hpp"

namespace syslab::model {

// Contiguous, uninitialised. Destroying it gives the memory to work that is queued on its stream later.
class Tensor {
 public:
  Tensor() = default;
  Tensor(const TensorSpec& spec, device::Stream stream, device::MemoryCategory category)
      : buffer_(spec.bytes(), spec.name, stream, category), view_(buffer_.data(), spec.dtype, spec.shape) {}

  bool empty() const { return view_.data == nullptr; }
  TensorView view() const { return view_; }
  operator TensorView() const { return view_; }       // NOLINT: lending is what an owner is for
  operator ConstTensorView() const { return view_; }  // NOLINT

 private:
  device::Buffer buffer_;
  TensorView view_;
};

// A tensor of any device and any strides, read whole: row-major, on the host. Waits for the stream.
std::vector<double> values_of(const ConstTensorView& tensor, device::Stream stream);

// The same view, `elements` further in memory.
template <typename View>
View shifted(View view, std::int64_t elements) {
  using Byte =
      std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(view.data)>>, const std::byte, std::byte>;
  view.data = static_cast<Byte*>(view.data) + elements * static_cast<std::int64_t>(size_of(view.dtype));
  return view;
}

// Columns [first, first + count), or rows, of a matrix; rows as far apart as before.
template <typename View>
View columns(const View& matrix, std::int64_t first, std::int64_t count) {
  View part = shifted(matrix, first);
  part.shape = {matrix.size(0), count};
  return part;
}
template <typename View>
View rows(const View& matrix, std::int64_t first, std::int64_t count) {
  View part = shifted(matrix, first * matrix.stride(0));
  part.shape = {count, matrix.size(1)};
  return part;
}

}  // namespace syslab::model
