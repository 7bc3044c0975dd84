// The rungs of the gate: for this folder alone.
#pragma once

#include "ops/supports_dtypes.hpp"
#include "ops/swiglu/swiglu.hpp"

namespace syslab::swiglu {

Rung reference_rung();
Rung naive_rung();
Rung eager_cuda_rung();
Rung fused_cuda_rung();

// What a rung here answers: the dtypes that it lists.
inline auto supports_dtypes(const ops::RungInfo& info) { return ops::supports_dtypes(info, &Problem::dtype); }

}  // namespace syslab::swiglu
