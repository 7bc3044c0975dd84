// Calls of a library on a GPU, in the process where it runs: what src/python/syslab_gpu.py and syslab_tensors.py are
// for a Python class. Where the host shares memory, this is the other end of worker/judged/gpu_handover.hpp. What waits
// for what on its stream:
//
//   step reaches N + 1 (the host has given the inputs)
//   an empty kernel · [begin] · the call · [end]
//   done becomes N + 1
//
// Whatever is said here only helps the library's own case: then the time is the host's, and [begin] to [end] is
// believed where both agree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/text/units.hpp"
#include "device/buffer.hpp"
#include "device/event.hpp"
#include "device/fenced_memory.hpp"
#include "device/mapped_page.hpp"
#include "device/peer_memory.hpp"
#include "device/stream.hpp"
#include "measure/cuda_device.hpp"
#include "worker/judged/call.hpp"

namespace syslab::worker {

class ServedGpu {
 public:
  // Unsupported where there is no such GPU. With the CPU as its place it does the same there, for tests.
  // Calls whose tensors would take more than `most_fenced` bytes, each in a piece as large as the largest, are not
  // fenced in: a law's few that are so long would otherwise fill the GPU.
  explicit ServedGpu(device::Place place, std::size_t most_fenced = std::size_t{4} << 30);

  device::Stream stream() const { return device_.stream(); }

  // `words`: the beginning of the memory that the host sees, too; borrowed. Error(device) where the driver refuses.
  void share(std::byte* words);
  bool shares() const { return words_ != nullptr; }
  // The host's memory of that handle.
  std::byte* memory(const std::string& handle);
  // Queues body() behind the inputs of that step, calls queued(), and returns once the host has the outputs: the time
  // by events. Throws what either throws, failures of kernels, and Error(check) for work on a stream of its own that
  // does not end with the call.
  Nanoseconds run_shared(std::uint32_t step, const std::function<void()>& body, const std::function<void()>& queued);

  // Where memory is not shared, and for calls that nobody times: room for a call's tensors, at the offsets of there(),
  // until the next one's. Outputs, with what lies around them, are as the host's; inputs hold NaN until the call's turn
  // on its stream. Of a guarded call each tensor, its bytes rounded up to 256, ends where the mapping ends, if the
  // driver can do that.
  std::byte* copied(const CallRequest& request, const std::byte* memory);
  // Whether the last call's tensors end so.
  bool is_fenced() const { return base_ != nullptr && base_ == fenced_.data(); }
  const CallRequest& there() const { return there_; }  // the last call's; the host's offsets where it is not guarded
  // That call, timed as a rung of ours is (measure/cuda_device.hpp): gate · inputs copied in · [begin] · body() ·
  // [end]. Then tensors, and what lies around outputs, are copied to the host's memory, but for what is lent. Throws
  // what body() throws, failures of kernels, and Error(check) for work on a stream of its own.
  Returned run(const CallRequest& request, const std::function<void()>& body, std::byte* memory);
  // The same without a gate and a clock: body() may queue work in other streams, too.
  void run_untimed(const CallRequest& request, const std::function<void()>& body, std::byte* memory);

  // What replays body(), captured as a graph. Unsupported, with the reason, where it cannot be.
  std::function<void()> captured(const std::function<void()>& body) const;

 private:
  void wait(std::uint32_t step) const;
  std::uint32_t* word(std::size_t at) const { return words_ + at; }
  bool fence(const CallRequest& request);
  template <typename Part>
  void for_each_output_part(const CallRequest& request, const Part& part) const;
  void give(const CallRequest& request);
  void copy_back(const CallRequest& request, std::byte* memory);
  void look_for_early_reads(const CallRequest& request, const std::function<void()>& body, std::byte* memory);

  device::Place place_;
  measure::CudaDevice device_;
  device::Event begin_, end_;
  std::uint32_t* words_ = nullptr;
  std::unique_ptr<device::MappedPage> page_;
  std::string handle_;
  std::unique_ptr<device::PeerView> view_;
  device::Buffer truth_, copy_;  // truth_: inputs, until they are given, at the host's offsets
  device::FencedMemory fenced_;
  std::size_t most_fenced_;
  bool may_fence_ = true;
  std::byte* base_ = nullptr;  // what the offsets of there_ count from
  CallRequest there_;
  int looked_at_ = 0;  // calls
};

}  // namespace syslab::worker
