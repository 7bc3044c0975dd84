#include "ops/attention/flash_fp32_forward.cuh"
#include "ops/attention/flash_fp32_launch.cuh"

namespace syslab::attention::fp32 {

template <>
void launch_forward<Tf32>(int columns, const ForwardParams& params, std::int64_t blocks, device::Stream stream) {
  const auto run = [&](auto kernel, int shared) {
    launch(kernel, params, blocks, shared, stream, "flash_tf32 forward");
  };
  if (columns == 16) return run(forward_kernel<Tf32, 16>, ForwardTile<16>::kShared);
  if (columns == 32) return run(forward_kernel<Tf32, 32>, ForwardTile<32>::kShared);
  if (columns == 64) return run(forward_kernel<Tf32, 64>, ForwardTile<64>::kShared);
  return run(forward_kernel<Tf32, 128>, ForwardTile<128>::kShared);
}

}  // namespace syslab::attention::fp32
