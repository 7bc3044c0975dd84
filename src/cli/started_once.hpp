// mpirun, torchrun and srun start a program many times. A run has one owner: one plan, one writer, one progress line.
#pragma once

namespace syslab::cli {

// Error(usage) when this process is one of several that a launcher started, naming the launcher's variable: each would
// make a run of its own, and measure beside the others.
void require_started_once();

}  // namespace syslab::cli
