// Calls of a library on a GPU, in the process where it runs: what tools/python/syslab_gpu.py and syslab_tensors.py are
// for a Python class. Where the host shares memory, this is the other end of worker/gpu_handover.hpp. What waits for
// what on its stream:
//
//   step reaches N + 1 (the host has given the inputs) · an empty kernel · [begin] · the call · [end] · done becomes N
//   + 1
//
// Whatever is said here only helps the library's own case: then the time is the host's, and [begin] to [end] is
// believed where both agree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/units.hpp"
#include "device/buffer.hpp"
#include "device/event.hpp"
#include "device/mapped_page.hpp"
#include "device/peer_memory.hpp"
#include "device/stream.hpp"
#include "measure/cuda_device.hpp"
#include "worker/call.hpp"

namespace syslab::worker {

class ServedGpu {
 public:
  // Unsupported where there is no such GPU. With the CPU as its place it does the same there, for tests.
  explicit ServedGpu(device::Place place);

  device::Stream stream() const { return device_.stream(); }

  // `words`: the beginning of the memory that the host sees, too; borrowed. Error(device) where the driver refuses.
  void share(std::byte* words);
  bool shares() const { return words_ != nullptr; }
  // The host's memory of that handle.
  std::byte* memory(const std::string& handle);
  // Queues body() behind the inputs of that step, calls queued(), and returns once the host has the outputs: the time
  // by events. Throws what either throws, and failures of kernels.
  Nanoseconds run(std::uint32_t step, const std::function<void()>& body, const std::function<void()>& queued);

  // Where memory is not shared: a copy of so much of the host's, which holds that until the next one; and a call on it,
  // timed as a rung of ours is (measure/cuda_device.hpp), after which all tensors, with what lies around outputs, are
  // copied back. Throws what body() throws, failures of kernels, and Error(check) for work on a stream of its own.
  std::byte* copied(const std::byte* memory, std::size_t bytes);
  Nanoseconds run(const CallRequest& request, const std::function<void()>& body, std::byte* memory);

 private:
  void wait(std::uint32_t step) const;
  std::uint32_t* word(std::size_t at) const { return words_ + at; }

  device::Place place_;
  measure::CudaDevice device_;
  device::Event begin_, end_;
  std::uint32_t* words_ = nullptr;
  std::unique_ptr<device::MappedPage> page_;
  std::string handle_;
  std::unique_ptr<device::PeerView> view_;
  device::Buffer copy_;
};

}  // namespace syslab::worker
