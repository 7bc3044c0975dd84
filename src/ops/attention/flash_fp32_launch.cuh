// Starts one of the large kernels of the fp32 rungs.
#pragma once

#include "device/cuda.cuh"
#include "ops/attention/flash_fp32_kernels.hpp"

namespace syslab::attention::fp32 {

// More than 48 KiB of shared memory must be asked for, once a device; asking again costs a microsecond.
template <typename Kernel, typename Params>
void launch(Kernel kernel, const Params& params, std::int64_t blocks, int shared_bytes, device::Stream stream,
            const char* name) {
  device::check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
                "allow a block its shared memory", "cudaFuncSetAttribute");
  kernel<<<static_cast<unsigned>(blocks), kThreads, static_cast<unsigned>(shared_bytes), device::cuda_stream(stream)>>>(
      params);
  device::check_launch(name);
}

}  // namespace syslab::attention::fp32
