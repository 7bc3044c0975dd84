// The rungs of accumulation: for this folder alone.
#pragma once

#include "ops/accumulation/accumulation.hpp"

namespace syslab::accumulation {

Rung reference_rung();
Rung host_rung();
Rung gpu_rung();

// Where cuda_kernels.cu is built: on the first GPU of this process, waits for the result.
Result sum_on_gpu(const Problem& problem);

}  // namespace syslab::accumulation
