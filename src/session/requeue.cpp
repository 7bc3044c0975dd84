#include "session/requeue.hpp"

#include <signal.h>

#include <algorithm>
#include <array>

#include "core/process/environment_variable.hpp"
#include "runner/interruption.hpp"

namespace syslab::cli {

Exit exit_of_missing() {
  constexpr std::array kJobs{"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"};
  const int signal = runner::Interruption::latest();
  const bool told_to_go = signal == SIGTERM || signal == SIGUSR1;
  const bool is_job = std::ranges::any_of(kJobs, [](const char* name) { return !environment_variable(name).empty(); });
  return told_to_go && is_job ? Exit::requeue : Exit::incomplete;
}

}  // namespace syslab::cli
