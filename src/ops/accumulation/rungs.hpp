// The rungs of accumulation; private to this folder.
#pragma once

#include "ops/accumulation/accumulation.hpp"

namespace syslab::accumulation {

Rung reference_rung();
Rung host_rung();
Rung gpu_rung();

// Only if cuda_kernels.cu is built: runs on the first GPU of this process and waits for the result.
Result sum_on_gpu(const Problem& problem);

}  // namespace syslab::accumulation
