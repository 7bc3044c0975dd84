// Replaces nvtx.cu in builds without the CUDA toolkit.
#include "device/cuda/nvtx_push.hpp"

namespace syslab::device {

void nvtx_push(const char*) noexcept {}
void nvtx_pop() noexcept {}

}  // namespace syslab::device
