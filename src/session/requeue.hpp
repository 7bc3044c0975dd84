// What a scheduler's job ends with when it is stopped before its time.
#pragma once

#include "verdict/exit_code.hpp"

namespace syslab::cli {

// Of work of which something is missing that a later command goes on with: `requeue` if SIGTERM or SIGUSR1 came in a
// scheduler's job (Slurm, PBS, LSF), otherwise `incomplete`.
Exit exit_of_missing();

}  // namespace syslab::cli
