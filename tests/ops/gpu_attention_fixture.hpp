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

// A pass on mirrors of `host`'s tensors, which must outlive it.
class ForwardThere {
 public:
  ForwardThere(Tensors& host, device::Stream stream)
      : host_(host),
        stream_(stream),
        q_(host.forward().q, stream),
        k_(host.forward().k, stream),
        v_(host.forward().v, stream),
        out_(host.forward().out, stream),
        lse_(host.forward().lse, stream) {}

  ForwardArgs args() const { return {q_.view(), k_.view(), v_.view(), out_.view(), lse_.view()}; }
  void run(const Rung& rung, ops::Workspace workspace = {}) {
    validate(host_.problem(), args());
    rung.forward(host_.problem(), args(), workspace, stream_);
    bring_back();
  }
  void bring_back() {
    out_.fetch(host_.forward().out);
    lse_.fetch(host_.forward().lse);
  }

 private:
  Tensors& host_;
  device::Stream stream_;
  Mirror q_, k_, v_, out_, lse_;
};

class BackwardThere {
 public:
  BackwardThere(Tensors& host, device::Stream stream)
      : host_(host),
        stream_(stream),
        q_(host.backward().q, stream),
        k_(host.backward().k, stream),
        v_(host.backward().v, stream),
        out_(host.backward().out, stream),
        lse_(host.backward().lse, stream),
        dout_(host.backward().dout, stream),
        dq_(host.backward().dq, stream),
        dk_(host.backward().dk, stream),
        dv_(host.backward().dv, stream) {}

  BackwardArgs args() const {
    return {q_.view(),    k_.view(),  v_.view(),  out_.view(), lse_.view(),
            dout_.view(), dq_.view(), dk_.view(), dv_.view()};
  }
  void run(const Rung& rung, ops::Workspace workspace = {}) {
    validate(host_.problem(), args());
    rung.backward(host_.problem(), args(), workspace, stream_);
    bring_back();
  }
  void bring_back() {
    dq_.fetch(host_.backward().dq);
    dk_.fetch(host_.backward().dk);
    dv_.fetch(host_.backward().dv);
  }

 private:
  Tensors& host_;
  device::Stream stream_;
  Mirror q_, k_, v_, out_, lse_, dout_, dq_, dk_, dv_;
};

inline void run_forward_there(const Rung& rung, Tensors& tensors, device::Stream stream) {
  ForwardThere(tensors, stream).run(rung);
}
inline void run_backward_there(const Rung& rung, Tensors& tensors, device::Stream stream) {
  BackwardThere(tensors, stream).run(rung);
}

}  // namespace syslab::attention
