#include "ops/attention/wgmma/forward.cuh"

namespace syslab::attention::wgmma {

void launch_forward_128(int tile, DType dtype, const ForwardParams& params, int grid, device::Stream stream) {
  launch_forward_of<4, 5>(tile, dtype, params, grid, stream);
}

}  // namespace syslab::attention::wgmma
