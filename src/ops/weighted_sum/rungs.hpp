// The rungs of the weighted sum, and what they share: for this folder alone.
#pragma once

#include "ops/storage.hpp"
#include "ops/supports_dtypes.hpp"
#include "ops/weighted_sum/weighted_sum.hpp"

namespace syslab::weighted_sum {

Rung reference_rung();
Rung naive_rung();
Rung tiled_rung();
Rung tiled_cuda_rung();

// What a rung here answers: the dtypes that it lists.
inline auto supports_dtypes(const ops::RungInfo& info) { return ops::supports_dtypes(info, &Problem::dtype); }

using ops::with_storage;

}  // namespace syslab::weighted_sum
