// The rungs of the normalisation; private to this folder.
#pragma once

#include "ops/rms_norm/rms_norm.hpp"
#include "ops/supports_dtypes.hpp"

namespace syslab::rms_norm {

Rung reference_rung();
Rung naive_rung();
Rung eager_cuda_rung();
Rung fused_cuda_rung();

// supports() of the rungs here: the dtypes that they list.
inline auto supports_dtypes(const RungInfo& info) { return ops::supports_dtypes(info, &Problem::x_dtype); }

}  // namespace syslab::rms_norm
