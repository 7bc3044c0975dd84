// What a scheduler's job ends with when it is stopped before its time.
#pragma once

#include "verdict/exit_code.hpp"

namespace syslab::cli {

// `requeue` for a run that is not complete because SIGTERM or SIGUSR1 came in a scheduler's job (Slurm, PBS, LSF);
// otherwise `exit`.
Exit or_requeue(Exit exit);

}  // namespace syslab::cli
