#include "ops/attention/mma/forward.cuh"

namespace syslab::attention::flash {

void launch_forward_128(int tile, DType dtype, const ForwardParams& params, device::Stream stream) {
  launch_forward_of<6, 7, 8>(tile, dtype, params, stream);
}

}  // namespace syslab::attention::flash
