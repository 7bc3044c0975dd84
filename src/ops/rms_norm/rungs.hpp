// The rungs of the normalisation: for this folder alone.
#pragma once

#include "ops/rms_norm/rms_norm.hpp"
#include "ops/supports_dtypes.hpp"

namespace syslab::rms_norm {

Rung reference_rung();
Rung naive_rung();
Rung eager_cuda_rung();
Rung fused_cuda_rung();

// What a rung here answers: the dtypes that it lists.
inline auto supports_dtypes(const ops::RungInfo& info) { return ops::supports_dtypes(info, &Problem::x_dtype); }

}  // namespace syslab::rms_norm
