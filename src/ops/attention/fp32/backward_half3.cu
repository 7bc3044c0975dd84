#include "ops/attention/fp32/backward.cuh"
#include "ops/attention/fp32/launch.cuh"

namespace syslab::attention::fp32 {

template <>
void launch_key_gradients<Half3>(int columns, const BackwardParams& params, std::int64_t blocks,
                                 device::Stream stream) {
  with_columns(columns, [&]<int kColumns>(std::integral_constant<int, kColumns>) {
    static device::OverlappedKernel kernel(key_gradient_kernel<Half3, kColumns>, BackwardTile<kColumns>::kShared,
                                           "flash_fp32 gradients of keys and values");
    kernel.launch(static_cast<unsigned>(blocks), kThreads, stream, params);
  });
}

template <>
void launch_query_gradients<Half3>(int columns, const BackwardParams& params, std::int64_t blocks,
                                   device::Stream stream) {
  with_columns(columns, [&]<int kColumns>(std::integral_constant<int, kColumns>) {
    static device::OverlappedKernel kernel(query_gradient_kernel<Half3, kColumns>, BackwardTile<kColumns>::kShared,
                                           "flash_fp32 gradient of queries");
    kernel.launch(static_cast<unsigned>(blocks), kThreads, stream, params);
  });
}

}  // namespace syslab::attention::fp32
