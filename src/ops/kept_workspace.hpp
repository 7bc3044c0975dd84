// A workspace for many calls of one rung.
//
// A rung that takes its own memory at every call gives it back to the system after each, and the next call pays for
// fresh pages: a tenth of the time of a kernel that holds its scores. Who times calls lends memory instead, as a caller
// in a training loop would.
#pragma once

#include <memory>

#include "device/buffer.hpp"
#include "ops/rung.hpp"

namespace syslab::ops {

// Takes memory at the first call, where an account of buffers sees it, and keeps it. Copies share it, so calls through
// them must not run at the same time.
class KeptWorkspace {
 public:
  explicit KeptWorkspace(std::size_t bytes) : bytes_(bytes) {}

  // Memory of the device that `stream` works on, whichever stream the first call came with.
  Workspace lend(device::Stream stream = {}) const {
    if (buffer_->bytes() < bytes_) {
      *buffer_ = device::Buffer(bytes_, "workspace", stream, device::MemoryCategory::workspace);
    }
    return {buffer_->data(), buffer_->bytes()};
  }
  // What was taken already: nothing before the first lend().
  Workspace held() const { return {buffer_->data(), buffer_->bytes()}; }

 private:
  std::size_t bytes_;
  std::shared_ptr<device::Buffer> buffer_ = std::make_shared<device::Buffer>();
};

}  // namespace syslab::ops
