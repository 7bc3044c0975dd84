// The rungs of the element-wise operators, for this folder alone.
#pragma once

#include "ops/elementwise/elementwise.hpp"

namespace syslab::elementwise {

Rung reference_rung();
Rung naive_rung();
Rung fused_cuda_rung();

}  // namespace syslab::elementwise
