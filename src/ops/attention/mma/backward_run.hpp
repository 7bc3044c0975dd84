// Runs the kernels of a planned backward pass of flash_mma.
#pragma once

#include "ops/attention/mma/backward_kernels.hpp"

namespace syslab::attention::flash {

// `workspace` has plan.workspace_bytes(), aligned to 256 bytes; `launch` is the launcher of plan.tiles, which are
// `tiles`. Queues the kernels on `stream`; its GPU must be current.
void run_backward(const BackwardPlan& plan, const BackwardTiles& tiles, BackwardLauncher launch, const Problem& problem,
                  const BackwardArgs& args, void* workspace, device::Stream stream);

}  // namespace syslab::attention::flash
