// The rungs of the gate; private to this folder.
#pragma once

#include "ops/supports_dtypes.hpp"
#include "ops/swiglu/swiglu.hpp"

namespace syslab::swiglu {

Rung reference_rung();
Rung naive_rung();
Rung eager_cuda_rung();
Rung fused_cuda_rung();

// supports() of the rungs here: the dtypes that they list.
inline auto supports_dtypes(const RungInfo& info) { return ops::supports_dtypes(info, &Problem::dtype); }

}  // namespace syslab::swiglu
