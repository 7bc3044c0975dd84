// Replaces kernels.cu in builds without the CUDA toolkit.
#include "comm/kernels.hpp"
#include "device/cuda/cuda_error.hpp"

namespace syslab::comm::kernels {

void sum_in_order(std::span<const void* const>, void*, DType, std::int64_t, device::Stream) {
  device::throw_no_cuda("sum the parts of ranks on a GPU");
}

}  // namespace syslab::comm::kernels
