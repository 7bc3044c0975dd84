#include "ops/attention/flash_fp32_forward.cuh"
#include "ops/attention/flash_fp32_launch.cuh"

namespace syslab::attention::fp32 {

template <>
void launch_forward<Half3>(int columns, const ForwardParams& params, std::int64_t blocks, device::Stream stream) {
  const auto run = [&](auto kernel, int shared) {
    launch(kernel, params, blocks, shared, stream, "flash_fp32 forward");
  };
  if (columns == 16) return run(forward_kernel<Half3, 16>, ForwardTile<16>::kShared);
  if (columns == 32) return run(forward_kernel<Half3, 32>, ForwardTile<32>::kShared);
  if (columns == 64) return run(forward_kernel<Half3, 64>, ForwardTile<64>::kShared);
  return run(forward_kernel<Half3, 128>, ForwardTile<128>::kShared);
}

}  // namespace syslab::attention::fp32
