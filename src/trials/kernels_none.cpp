// Replaces kernels.cu in builds without the CUDA toolkit.
#include "device/cuda/cuda_error.hpp"
#include "trials/kernels.hpp"

namespace syslab::parallel::kernels {

void fill_brought(float*, std::int64_t, const CollectiveContent&, float, device::Stream) {
  device::throw_no_cuda("fill a collective's buffer on a GPU");
}

void raise_deviation(const float*, std::int64_t, const CollectiveContent&, double, std::uint64_t*, device::Stream) {
  device::throw_no_cuda("check a collective's result on a GPU");
}

}  // namespace syslab::parallel::kernels
