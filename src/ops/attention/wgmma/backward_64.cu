#include "ops/attention/wgmma/backward_rows.cuh"

namespace syslab::attention::wgmma {

void launch_backward_64(BackwardKernel kernel, int tile, DType dtype, const BackwardParams& params,
                        device::Stream stream) {
  launch_backward_of<0>(kernel, tile, dtype, params, stream);
}

}  // namespace syslab::attention::wgmma
