// The rungs of the embedding; private to this folder.
#pragma once

#include "ops/embedding/embedding.hpp"
#include "ops/supports_dtypes.hpp"

namespace syslab::embedding {

Rung reference_rung();
Rung naive_rung();
Rung fused_cuda_rung();

}  // namespace syslab::embedding
