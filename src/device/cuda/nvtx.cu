#include <nvtx3/nvToolsExt.h>

#include "device/cuda/nvtx_push.hpp"

namespace syslab::device {

void nvtx_push(const char* name) noexcept { nvtxRangePushA(name); }

void nvtx_pop() noexcept { nvtxRangePop(); }

}  // namespace syslab::device
