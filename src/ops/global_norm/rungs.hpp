// The rungs of the global norm and their shared code; private to this folder.
#pragma once

#include <cmath>

#include "ops/global_norm/global_norm.hpp"
#include "ops/supports_dtypes.hpp"

namespace syslab::global_norm {

Rung reference_rung();
Rung naive_rung();
Rung fused_cuda_rung();

// supports() of the rungs here: the dtypes that they list.
inline auto supports_dtypes(const RungInfo& info) { return ops::supports_dtypes(info, &Problem::dtype); }

// The factor for a gradient of this norm. Written so that NaN propagates; compiled for GPUs too.
constexpr double clip_factor(double norm, double max_norm) {
  if (max_norm == HUGE_VAL) return norm == norm ? 1.0 : norm;
  const double factor = max_norm / (norm + 1e-6);
  return factor > 1 ? 1.0 : factor;
}

}  // namespace syslab::global_norm
