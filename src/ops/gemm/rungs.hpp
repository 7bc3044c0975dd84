// The rungs of the matrix product and their shared code; private to this folder.
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

// supports() of the rungs here: the dtypes that they list.
inline auto supports_dtypes(const RungInfo& info) { return ops::supports_dtypes(info, &Problem::dtype); }

using ops::with_storage;

}  // namespace syslab::gemm
