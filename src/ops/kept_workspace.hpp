// A workspace for many calls of one rung.
//
// A rung that allocates its own memory frees it after every call, and the next call pays for fresh pages: a tenth of
// the time of a kernel that holds its scores. Timed calls are therefore given memory, as in a training loop.
#pragma once

#include <memory>

#include "device/buffer.hpp"
#include "ops/rung.hpp"

namespace syslab::ops {

// Allocates memory at the first call (visible in the memory log) and keeps it. Copies share it, so calls through them
// must not run concurrently.
class KeptWorkspace {
 public:
  explicit KeptWorkspace(std::size_t bytes) : bytes_(bytes) {}

  // Memory of `stream`'s device, whichever stream the first call came with.
  Workspace lend(device::Stream stream = {}) const {
    if (buffer_->bytes() < bytes_) {
      *buffer_ = device::Buffer(bytes_, "workspace", stream, device::MemoryCategory::workspace);
    }
    return {buffer_->data(), buffer_->bytes()};
  }
  // The memory allocated so far: empty before the first lend().
  Workspace held() const { return {buffer_->data(), buffer_->bytes()}; }

 private:
  std::size_t bytes_;
  std::shared_ptr<device::Buffer> buffer_ = std::make_shared<device::Buffer>();
};

}  // namespace syslab::ops
