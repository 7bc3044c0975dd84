// Tensors on a GPU as a library's products want them: one row after another through all heads. Those that lie so are
// used as they are; others are copied, into memory of the stream's allocator, which none of our experiments pays for.
#pragma once

#include "device/buffer.hpp"
#include "ops/attention/scores_cuda.hpp"

namespace syslab::attention {

inline bool is_packed(const ConstTensorView& view) {
  const Strides packed = contiguous_strides(view.shape);
  for (int dim = 0; dim < view.shape.rank(); ++dim) {
    if (view.size(dim) > 1 && view.stride(dim) != packed[static_cast<std::size_t>(dim)]) return false;
  }
  return true;
}

inline std::size_t packed_bytes(const ConstTensorView& view) {
  return static_cast<std::size_t>(view.elements()) * size_of(view.dtype);
}

class PackedInput {
 public:
  PackedInput(const ConstTensorView& view, device::Stream stream) : data_(view.data) {
    if (is_packed(view)) return;
    copy_ = device::Buffer(packed_bytes(view), "packed input", stream);
    data_ = copy_.data();
    scores::copy_view(view, TensorView(copy_.data(), view.dtype, view.shape), stream);
  }
  const void* data() const { return data_; }

 private:
  device::Buffer copy_;
  const void* data_;
};

class PackedOutput {
 public:
  PackedOutput(const TensorView& view, device::Stream stream) : view_(view), stream_(stream), data_(view.data) {
    if (is_packed(view)) return;
    copy_ = device::Buffer(packed_bytes(view), "packed output", stream);
    data_ = copy_.data();
  }
  // Puts what was computed where it belongs; last of all.
  void finish() const {
    if (data_ != view_.data) scores::copy_view(TensorView(data_, view_.dtype, view_.shape), view_, stream_);
  }
  void* data() const { return data_; }

 private:
  TensorView view_;
  device::Stream stream_;
  device::Buffer copy_;
  void* data_;
};

}  // namespace syslab::attention
