// Launches that overlap with the end of the kernel before them in the stream (programmatic dependent launch): blocks
// are already resident when their input is ready, which saves one or two microseconds per kernel. If the GPU or the
// machine code does not support it, the launch is an ordinary one.
//
//   __global__ void my_kernel(…) {
//     ptx::wait_for_kernels_before(); // before reading or writing anything that another kernel touches
//     ptx::let_next_kernel_come();
//
//   static OverlappedKernel launcher(my_kernel, shared_bytes, "my_kernel");
//   launcher.launch(blocks, threads, stream, params);
//
// What waits for what. wait_for_kernels_before() is the only order between such a kernel and the one before it:
//   landed   what that kernel wrote can be read
//   left     that kernel reads nothing any more that is overwritten now: all of its blocks have ended
// This holds for all earlier kernels of the stream, since the kernel before cannot end until its own blocks have passed
// their wait. So at least one block of every grid must wait. A block without work may end before it.
// It orders ordinary loads. A pointer that is `const T* __restrict__`, and __ldg(), promise that nobody writes the
// memory while the kernel runs, and it runs from before the wait. ptxas 13.0 has been seen to move such a load
// (ld.global.nc) in front of the wait, so kernels that overlap use neither (tests/overlapped_loads.py).
// let_next_kernel_come() orders nothing: it says that blocks of the next kernel may start, and they wait in turn. So it
// may stand before the wait or behind it. Ordinary launches, copies and events wait for the whole kernel by themselves.
#pragma once

#include <string>

#include "device/cuda/cuda.cuh"
#include "device/cuda/prepared_kernel.cuh"

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
    tell_watch(kernel_, threads, shared_bytes_, name_);
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
      // Code compiled for older GPUs lacks the wait instruction.
      return attributes.ptxVersion >= 90 && attributes.binaryVersion >= 90 ? kOverlaps : kFollows;
    });
  }

  void (*kernel_)(Parameters...);
  int shared_bytes_;
  std::string name_;
  PerGpu<State> states_;
};

}  // namespace syslab::device
