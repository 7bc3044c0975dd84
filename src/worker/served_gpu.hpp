// Calls of a library on a GPU, in the process where it runs: what tools/python/syslab_tensors.py is for a Python class.
// Its tensors are copies: memory of the GPU is shared with classes alone (worker/gpu_handover.hpp).
#pragma once

#include <cstddef>
#include <functional>

#include "device/buffer.hpp"
#include "device/fenced_memory.hpp"
#include "device/stream.hpp"
#include "measure/cuda_device.hpp"
#include "worker/call.hpp"

namespace syslab::worker {

class ServedGpu {
 public:
  // Unsupported where there is no such GPU. With the CPU as its place it does the same there, for tests.
  // Calls whose tensors would take more than `most_fenced` bytes, each in a piece as large as the largest, are not
  // fenced in: a law's few that are so long would otherwise fill the GPU.
  explicit ServedGpu(device::Place place, std::size_t most_fenced = std::size_t{4} << 30);

  device::Stream stream() const { return device_.stream(); }

  // Room for a call's tensors, at the offsets of there(), until the next one's. Outputs, with what lies around them,
  // are as the host's; inputs hold NaN until the call's turn on its stream. Of a guarded call each tensor, its bytes
  // rounded up to 256, ends where the mapping ends, if the driver can do that.
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
  bool fence(const CallRequest& request);
  template <typename Part>
  void for_each_output_part(const CallRequest& request, const Part& part) const;
  void give(const CallRequest& request);
  void copy_back(const CallRequest& request, std::byte* memory);
  void look_for_early_reads(const CallRequest& request, const std::function<void()>& body, std::byte* memory);

  device::Place place_;
  measure::CudaDevice device_;
  device::Buffer truth_, copy_;  // truth_: inputs, until they are given, at the host's offsets
  device::FencedMemory fenced_;
  std::size_t most_fenced_;
  bool may_fence_ = true;
  std::byte* base_ = nullptr;  // what the offsets of there_ count from
  CallRequest there_;
  int looked_at_ = 0;  // calls
};

}  // namespace syslab::worker
