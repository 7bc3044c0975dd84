#include "ops/attention/fp32/forward.cuh"
#include "ops/attention/fp32/launch.cuh"

namespace syslab::attention::fp32 {

template <>
void launch_forward<Half3>(int columns, const ForwardParams& params, std::int64_t blocks, device::Stream stream) {
  with_columns(columns, [&]<int kColumns>(std::integral_constant<int, kColumns>) {
    static device::OverlappedKernel kernel(forward_kernel<Half3, kColumns>, ForwardTile<kColumns>::kShared,
                                           "flash_fp32 forward");
    kernel.launch(static_cast<unsigned>(blocks), kThreads, stream, params);
  });
}

}  // namespace syslab::attention::fp32
