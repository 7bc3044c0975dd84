// A host tensor's memory on a GPU, copied there whole and brought back whole: what was written between rows comes back.
#pragma once

#include "tests/device/gpu_fixture.hpp"
#include "tests/ops/model_tensors.hpp"

namespace syslab::ops {

// `shift`: elements by which it misses the alignment of vectors.
class There {
 public:
  There(const Tensor& host, device::Stream stream, std::int64_t shift = 0)
      : stream_(stream),
        offset_(static_cast<std::size_t>(shift) * size_of(host.dtype)),
        buffer_(host.bytes.size() + offset_, "test", stream),
        view(buffer_.as<std::byte>() + offset_, host.dtype, host.shape, host.strides) {
    device::copy_now(view.data, host.bytes.data(), host.bytes.size(), stream);
  }
  void bring_back(Tensor& host) const { device::copy_now(host.bytes.data(), view.data, host.bytes.size(), stream_); }

 private:
  device::Stream stream_;
  std::size_t offset_;
  device::Buffer buffer_;

 public:
  TensorView view;
};

}  // namespace syslab::ops
