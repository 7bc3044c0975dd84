// Tensors of an attention problem on a GPU, mirrors of the host's.
#pragma once

#include "attention_fixture.hpp"
#include "device/memory.hpp"
#include "tests/device/gpu_fixture.hpp"

namespace syslab::attention {

// A copy of a host tensor on the GPU, with its strides and what lies between its rows.
class Mirror {
 public:
  Mirror(const ConstTensorView& host, device::Stream stream)
      : stream_(stream), view_(nullptr, host.dtype, host.shape, host.strides) {
    const std::int64_t extent = extent_elements(host.shape, host.strides);
    buffer_ = device::Buffer(static_cast<std::size_t>(extent) * size_of(host.dtype), "test", stream);
    device::copy_now(buffer_.data(), host.data, buffer_.bytes(), stream);
    view_.data = buffer_.data();
  }
  const TensorView& view() const { return view_; }
  void fetch(const TensorView& host) const { device::copy_now(host.data, buffer_.data(), buffer_.bytes(), stream_); }

 private:
  device::Stream stream_;
  device::Buffer buffer_;
  TensorView view_;
};

// Runs a rung on mirrors of `tensors` and brings its outputs back.
inline void run_forward_there(const Rung& rung, Tensors& tensors, device::Stream stream) {
  const ForwardArgs host = tensors.forward();
  const Mirror q(host.q, stream), k(host.k, stream), v(host.v, stream), out(host.out, stream), lse(host.lse, stream);
  const ForwardArgs there{q.view(), k.view(), v.view(), out.view(), lse.view()};
  validate(tensors.problem(), there);
  rung.forward(tensors.problem(), there, {}, stream);
  out.fetch(host.out);
  lse.fetch(host.lse);
}

inline void run_backward_there(const Rung& rung, Tensors& tensors, device::Stream stream) {
  const BackwardArgs host = tensors.backward();
  const Mirror q(host.q, stream), k(host.k, stream), v(host.v, stream), out(host.out, stream), lse(host.lse, stream),
      dout(host.dout, stream), dq(host.dq, stream), dk(host.dk, stream), dv(host.dv, stream);
  const BackwardArgs there{q.view(),    k.view(),  v.view(),  out.view(), lse.view(),
                           dout.view(), dq.view(), dk.view(), dv.view()};
  validate(tensors.problem(), there);
  rung.backward(tensors.problem(), there, {}, stream);
  dq.fetch(host.dq);
  dk.fetch(host.dk);
  dv.fetch(host.dv);
}

}  // namespace syslab::attention
