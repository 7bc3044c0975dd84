// The rungs of the normalisation: for this folder alone.
#pragma once

#include "ops/rms_norm/rms_norm.hpp"

namespace syslab::rms_norm {

Rung reference_rung();
Rung naive_rung();
Rung eager_cuda_rung();
Rung fused_cuda_rung();

// A rung that takes every problem of the given dtype of x, fp64 apart from the rest.
std::function<std::optional<std::string>(const Problem&, Direction)> supports_dtypes(const ops::RungInfo& info);

}  // namespace syslab::rms_norm
