// GPU tensors in the layout that library products need: contiguous rows through all heads. Tensors with that layout are
// used in place; others are copied to memory of the stream's allocator, which happens in none of our experiments.
#pragma once

#include "device/buffer.hpp"
#include "ops/attention/group_products.hpp"
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
  PackedInput(const ConstTensorView& view, device::Stream stream) : data_(view.data), dtype_(view.dtype) {
    if (is_packed(view)) return;
    copy_ = device::Buffer(packed_bytes(view), "packed input", stream);
    data_ = copy_.data();
    scores::copy_view(view, TensorView(copy_.data(), view.dtype, view.shape), stream);
  }
  const void* data() const { return data_; }
  ConstMatrix matrix() const { return {data_, dtype_}; }

 private:
  device::Buffer copy_;
  const void* data_;
  DType dtype_;
};

class PackedOutput {
 public:
  PackedOutput(const TensorView& view, device::Stream stream) : view_(view), stream_(stream), data_(view.data) {
    if (is_packed(view)) return;
    copy_ = device::Buffer(packed_bytes(view), "packed output", stream);
    data_ = copy_.data();
  }
  // Copies the result to its destination; call last.
  void finish() const {
    if (data_ != view_.data) scores::copy_view(TensorView(data_, view_.dtype, view_.shape), view_, stream_);
  }
  void* data() const { return data_; }
  Matrix matrix() const { return {data_, view_.dtype}; }

 private:
  TensorView view_;
  device::Stream stream_;
  device::Buffer copy_;
  void* data_;
};

// All tensors of a pass.
struct PackedForward {
  PackedForward(const ForwardArgs& args, device::Stream stream)
      : q(args.q, stream), k(args.k, stream), v(args.v, stream), out(args.out, stream), lse(args.lse) {}
  void finish() const { out.finish(); }

  PackedInput q, k, v;
  PackedOutput out;
  scores::Lse lse;
};

struct PackedBackward {
  PackedBackward(const BackwardArgs& args, device::Stream stream)
      : q(args.q, stream),
        k(args.k, stream),
        v(args.v, stream),
        out(args.out, stream),
        dout(args.dout, stream),
        dq(args.dq, stream),
        dk(args.dk, stream),
        dv(args.dv, stream),
        lse(args.lse) {}
  void finish() const {
    for (const PackedOutput* output : {&dq, &dk, &dv}) output->finish();
  }

  PackedInput q, k, v, out, dout;
  PackedOutput dq, dk, dv;
  scores::ConstLse lse;
};

}  // namespace syslab::attention
