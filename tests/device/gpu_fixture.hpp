// What GPU tests begin with: a stream of the first GPU, or a skip.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "device/buffer.hpp"
#include "device/cuda/launch.hpp"
#include "device/memory.hpp"
#include "device/stream.hpp"

namespace syslab::device {

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU that this process can use";
    owner_ = OwnedStream(kGpu);
    stream = owner_.view();
  }

  template <typename T>
  Buffer to_gpu(const std::vector<T>& host) {
    Buffer there(host.size() * sizeof(T), "test", stream);
    copy_now(there.data(), host.data(), there.bytes(), stream);
    return there;
  }
  template <typename T>
  std::vector<T> to_host(const Buffer& there) {
    std::vector<T> host(there.bytes() / sizeof(T));
    copy_now(host.data(), there.data(), there.bytes(), stream);
    return host;
  }

  static constexpr Place kGpu{Kind::cuda, 0};
  Stream stream;

 private:
  OwnedStream owner_;
};

}  // namespace syslab::device
