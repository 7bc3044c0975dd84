// The rungs of the weighted sum and their shared code; private to this folder.
#pragma once

#include "ops/storage.hpp"
#include "ops/supports_dtypes.hpp"
#include "ops/weighted_sum/weighted_sum.hpp"

namespace syslab::weighted_sum {

Rung reference_rung();
Rung naive_rung();
Rung tiled_rung();
Rung tiled_cuda_rung();

// supports() of the rungs here: the dtypes that they list.
inline auto supports_dtypes(const RungInfo& info) { return ops::supports_dtypes(info, &Problem::dtype); }

using ops::with_storage;

}  // namespace syslab::weighted_sum
