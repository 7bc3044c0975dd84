// Replaces kernels.cu, digest.cu and fill_random.cu in builds without the CUDA toolkit.
#include "device/cuda/cuda_error.hpp"
#include "device/cuda/kernels.hpp"

namespace syslab::device::kernels {

void fill_pattern(void*, const Pattern&, std::size_t, std::int64_t, std::int64_t, Stream) {
  throw_no_cuda("fill memory of a GPU");
}
void count_differences(const void*, const Pattern&, std::size_t, std::int64_t, std::int64_t, std::uint64_t*, Stream) {
  throw_no_cuda("compare memory of a GPU");
}
void count_nans(const void*, std::size_t, std::uint64_t, std::int64_t, std::uint64_t*, Stream) {
  throw_no_cuda("search memory of a GPU");
}
void add_digest(const void*, std::size_t, std::uint64_t*, Stream) { throw_no_cuda("take a digest on a GPU"); }
void fill_random(const TensorView&, std::uint64_t, Distribution, float, std::uint64_t, Stream) {
  throw_no_cuda("draw random numbers on a GPU");
}
void wait_for_ticket(const std::uint64_t*, std::uint64_t, std::uint64_t, std::uint64_t*, Stream) {
  throw_no_cuda("hold back a CUDA stream");
}
void stamp_clocks(ClockStamp*, int, Stream) { throw_no_cuda("read a GPU's clocks"); }

}  // namespace syslab::device::kernels
