#include "ops/attention/mma/forward.cuh"

namespace syslab::attention::flash {

void launch_forward_64(int tile, DType dtype, const ForwardParams& params, device::Stream stream) {
  launch_forward_of<3, 4, 5>(tile, dtype, params, stream);
}

}  // namespace syslab::attention::flash
