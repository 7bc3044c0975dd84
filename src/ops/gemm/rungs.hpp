// The rungs of the matrix product, and what they share: for this folder alone.
#pragma once

#include "ops/gemm/gemm.hpp"
#include "ops/storage.hpp"
#include "ops/supports_dtypes.hpp"

namespace syslab::gemm {

Rung reference_rung();
Rung naive_rung();
Rung tiled_rung();
Rung openblas_rung();
Rung cublas_tf32_rung();
Rung cublas_rung();

// What a rung here answers: the dtypes that it lists.
inline auto supports_dtypes(const ops::RungInfo& info) { return ops::supports_dtypes(info, &Problem::dtype); }

using ops::with_storage;

}  // namespace syslab::gemm
