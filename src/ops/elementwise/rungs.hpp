// The rungs of the element-wise operators; private to this folder.
#pragma once

#include "ops/elementwise/elementwise.hpp"

namespace syslab::elementwise {

Rung reference_rung();
Rung naive_rung();
Rung fused_cuda_rung();

}  // namespace syslab::elementwise
