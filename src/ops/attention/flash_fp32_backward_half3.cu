#include "ops/attention/flash_fp32_backward.cuh"
#include "ops/attention/flash_fp32_launch.cuh"

namespace syslab::attention::fp32 {

template <>
void launch_key_gradients<Half3>(int columns, const BackwardParams& params, std::int64_t blocks,
                                 device::Stream stream) {
  const auto run = [&](auto kernel, int shared) {
    launch(kernel, params, blocks, shared, stream, "flash_fp32 gradients of keys and values");
  };
  if (columns == 16) return run(key_gradient_kernel<Half3, 16>, BackwardTile<16>::kShared);
  if (columns == 32) return run(key_gradient_kernel<Half3, 32>, BackwardTile<32>::kShared);
  if (columns == 64) return run(key_gradient_kernel<Half3, 64>, BackwardTile<64>::kShared);
  return run(key_gradient_kernel<Half3, 128>, BackwardTile<128>::kShared);
}

template <>
void launch_query_gradients<Half3>(int columns, const BackwardParams& params, std::int64_t blocks,
                                   device::Stream stream) {
  const auto run = [&](auto kernel, int shared) {
    launch(kernel, params, blocks, shared, stream, "flash_fp32 gradient of queries");
  };
  if (columns == 16) return run(query_gradient_kernel<Half3, 16>, BackwardTile<16>::kShared);
  if (columns == 32) return run(query_gradient_kernel<Half3, 32>, BackwardTile<32>::kShared);
  if (columns == 64) return run(query_gradient_kernel<Half3, 64>, BackwardTile<64>::kShared);
  return run(query_gradient_kernel<Half3, 128>, BackwardTile<128>::kShared);
}

}  // namespace syslab::attention::fp32
