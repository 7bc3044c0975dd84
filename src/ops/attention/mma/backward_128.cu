#include "ops/attention/mma/backward_launch.cuh"

namespace syslab::attention::flash {

void launch_backward_128(BackwardKernel kernel, int tiles, DType dtype, const BackwardParams& params, BackwardGrid grid,
                         device::Stream stream) {
  launch_backward_of<4, 5>(kernel, tiles, dtype, params, grid, stream);
}

}  // namespace syslab::attention::flash
