#include "ops/attention/mma/forward.cuh"

namespace syslab::attention::flash {

void launch_forward_32(int tile, DType dtype, const ForwardParams& params, device::Stream stream) {
  launch_forward_of<0, 1, 2>(tile, dtype, params, stream);
}

}  // namespace syslab::attention::flash
