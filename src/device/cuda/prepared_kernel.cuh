// A kernel with blocks that need more shared memory than CUDA gives by default. The limit is raised once on each GPU,
// not at every launch, which would cost a microsecond.
//
//   static PreparedKernel kernel(my_kernel, shared_bytes, "my_kernel");
//   kernel.launch(blocks, threads, stream, params);
#pragma once

#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <utility>

#include "device/cuda/cuda.cuh"
#include "device/cuda/kernel_watch.hpp"

namespace syslab::device {

// A value per GPU, created at its first use there. Value{} means not created yet.
template <typename Value>
class PerGpu {
 public:
  // For the current GPU. Concurrent threads may each create it.
  template <typename Make>
  Value of_current(const Make& make) {
    int gpu = 0;
    check(cudaGetDevice(&gpu), "ask which GPU is current", "cudaGetDevice");
    if (gpu >= static_cast<int>(values_.size())) return make();
    std::atomic<Value>& kept = values_[static_cast<std::size_t>(gpu)];
    Value value = kept.load();
    if (value == Value{}) kept.store(value = make());
    return value;
  }

 private:
  std::array<std::atomic<Value>, 32> values_{};
};

// On the current GPU. Error(device) naming the kernel if the GPU has less.
template <typename... Parameters>
void allow_shared_memory(void (*kernel)(Parameters...), int bytes, std::string_view name) {
  if (bytes == 0) return;
  check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
        "allow " + std::string(name) + " its shared memory", "cudaFuncSetAttribute");
}

// Tells the thread's watch, if there is one, of a launch on the current GPU.
template <typename... Parameters>
void tell_watch(void (*kernel)(Parameters...), int threads, int shared_bytes, std::string_view name) {
  KernelWatch* const watch = KernelWatch::of_thread();
  if (watch == nullptr) return;
  const auto* address = reinterpret_cast<const void*>(kernel);
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, address), "ask about " + std::string(name), "cudaFuncGetAttributes");
  KernelResources seen;
  seen.name = name;
  seen.threads = threads;
  seen.registers = attributes.numRegs;
  seen.shared_bytes = static_cast<int>(attributes.sharedSizeBytes) + shared_bytes;
  seen.local_bytes = static_cast<int>(attributes.localSizeBytes);
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&seen.blocks, address, threads,
                                                      static_cast<std::size_t>(shared_bytes)),
        "ask how many blocks of " + std::string(name) + " fit", "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  int gpu = 0;
  check(cudaGetDevice(&gpu), "ask which GPU is current", "cudaGetDevice");
  check(cudaDeviceGetAttribute(&seen.most_threads, cudaDevAttrMaxThreadsPerMultiProcessor, gpu),
        "ask how many threads fit", "cudaDeviceGetAttribute");
  watch->note(std::move(seen));
}

template <typename... Parameters>
class PreparedKernel {
 public:
  PreparedKernel(void (*kernel)(Parameters...), int shared_bytes, std::string_view name)
      : kernel_(kernel), shared_bytes_(shared_bytes), name_(name) {}

  // On the current GPU, which is that of the stream. Throws as check_launch() does.
  void launch(dim3 blocks, int threads, Stream stream, const Parameters&... parameters) {
    prepared_.of_current([this] {
      allow_shared_memory(kernel_, shared_bytes_, name_);
      return true;
    });
    tell_watch(kernel_, threads, shared_bytes_, name_);
    kernel_<<<blocks, static_cast<unsigned>(threads), static_cast<std::size_t>(shared_bytes_), cuda_stream(stream)>>>(
        parameters...);
    check_launch(name_);
  }

 private:
  void (*kernel_)(Parameters...);
  int shared_bytes_;
  std::string name_;
  PerGpu<bool> prepared_;
};

}  // namespace syslab::device
