// For .cu files of any room: CUDA's own types next to ours.
//
//   my_kernel<<<grid, block, smem, device::cuda_stream(stream)>>>(…);
//   device::check_launch("my_kernel");
#pragma once

#include <cuda_runtime.h>

#include <string_view>

#include "device/cuda/cuda_error.hpp"
#include "device/cuda/launch.hpp"
#include "device/device.hpp"

namespace syslab::device {

// Throws unless `error` is cudaSuccess; `asked` reads "allow 96 KiB of shared memory".
inline void check(cudaError_t error, std::string_view asked, std::string_view call = {}) {
  if (error == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // otherwise the next launch would report it
  throw_cuda_error(asked, call, cudaGetErrorName(error), cudaGetErrorString(error));
}

inline cudaStream_t cuda_stream(Stream stream) { return static_cast<cudaStream_t>(stream.handle); }

}  // namespace syslab::device
