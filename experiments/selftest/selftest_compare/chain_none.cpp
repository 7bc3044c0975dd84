// Replaces chain.cu in builds without the CUDA toolkit.
#include "chain.hpp"
#include "device/cuda/cuda_error.hpp"

namespace syslab::selftest {

void queue_chain(const double*, std::int64_t, double*, GpuFault, device::Stream) {
  device::throw_no_cuda("run a chain on a GPU");
}

}  // namespace syslab::selftest
