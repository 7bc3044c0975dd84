#include "device/nvtx.hpp"

#include <nvtx3/nvToolsExt.h>

namespace syslab::device {

NvtxRange::NvtxRange(const char* name) { nvtxRangePushA(name); }

NvtxRange::~NvtxRange() { nvtxRangePop(); }

}  // namespace syslab::device
