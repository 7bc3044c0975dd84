// The rungs of the gate: for this folder alone.
#pragma once

#include "ops/swiglu/swiglu.hpp"

namespace syslab::swiglu {

Rung reference_rung();
Rung naive_rung();
Rung eager_cuda_rung();
Rung fused_cuda_rung();

// What every rung here answers: the dtypes it lists, in both directions.
std::function<std::optional<std::string>(const Problem&, Direction)> supports_dtypes(const ops::RungInfo& info);

}  // namespace syslab::swiglu
