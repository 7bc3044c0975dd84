// Replaces kernels.cu in builds without the CUDA toolkit.
#include "check/kernels.hpp"
#include "device/cuda/cuda_error.hpp"

namespace syslab::check::kernels {

Tally compare(const ConstTensorView&, std::uint64_t, const double*, const double*, bool, const std::int64_t*, int,
              device::Stream) {
  device::throw_no_cuda("compare on a GPU");
}

void fingerprint(const void*, std::size_t, std::uint64_t*, device::Stream) {
  device::throw_no_cuda("take a fingerprint on a GPU");
}

}  // namespace syslab::check::kernels
