// Launches whose start overlaps the end of the kernel before in the stream (programmatic dependent launch): the blocks
// are there when their input is, which saves one or two microseconds a kernel. On GPUs and in machine code that cannot,
// the launch is an ordinary one.
//
//   __global__ void my_kernel(…) {
//     ptx::wait_for_kernels_before();   // before anything is read or written that another kernel touches
//     ptx::let_next_kernel_come();
//
//   static OverlappedKernel launcher(my_kernel, shared_bytes, "my_kernel");
//   launcher.launch(blocks, threads, stream, params);
#pragma once

#include <string>

#include "device/cuda.cuh"
#include "device/prepared_kernel.cuh"

namespace syslab::device {

template <typename... Parameters>
class OverlappedKernel {
 public:
  OverlappedKernel(void (*kernel)(Parameters...), int shared_bytes, std::string_view name)
      : kernel_(kernel), shared_bytes_(shared_bytes), name_(name) {}

  // On the current GPU, which is that of the stream. Throws as check_launch() does.
  void launch(dim3 blocks, int threads, Stream stream, Parameters... parameters) {
    cudaLaunchAttribute overlap{};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = blocks;
    config.blockDim = static_cast<unsigned>(threads);
    config.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes_);
    config.stream = cuda_stream(stream);
    config.attrs = &overlap;
    config.numAttrs = prepared() == kOverlaps ? 1 : 0;
    check(cudaLaunchKernelEx(&config, kernel_, parameters...), std::string("launch ") + name_, "cudaLaunchKernelEx");
    check_launch(name_);
  }

 private:
  enum State : signed char { kUnknown, kFollows, kOverlaps };

  State prepared() {
    return states_.of_current([this] {
      allow_shared_memory(kernel_, shared_bytes_, name_);
      cudaFuncAttributes attributes{};
      check(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel_)), "ask about " + name_,
            "cudaFuncGetAttributes");
      // Code compiled for older GPUs has no instruction to wait with.
      return attributes.ptxVersion >= 90 && attributes.binaryVersion >= 90 ? kOverlaps : kFollows;
    });
  }

  void (*kernel_)(Parameters...);
  int shared_bytes_;
  std::string name_;
  PerGpu<State> states_;
};

}  // namespace syslab::device
