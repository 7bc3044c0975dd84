#include "session/exit_code.hpp"

#include <signal.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/environment_variable.hpp"
#include "runner/interruption.hpp"

namespace syslab::cli {

Exit worse(Exit a, Exit b) {
  constexpr std::array kPrecedence{Exit::tool,    Exit::usage,      Exit::wrong,   Exit::slower,
                                   Exit::requeue, Exit::incomplete, Exit::unclear, Exit::well};
  return *std::find_if(kPrecedence.begin(), kPrecedence.end(), [&](Exit one) { return one == a || one == b; });
}

Exit or_requeue(Exit exit) {
  constexpr std::array kJobs{"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"};
  const int signal = runner::Interruption::latest();
  const bool told_to_go = signal == SIGTERM || signal == SIGUSR1;
  const bool is_job = std::ranges::any_of(kJobs, [](const char* name) { return !environment_variable(name).empty(); });
  return exit == Exit::incomplete && told_to_go && is_job ? Exit::requeue : exit;
}

Exit exit_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
    case ErrorKind::config:
      return Exit::usage;
    case ErrorKind::check:
      return Exit::wrong;
    case ErrorKind::oom:
    case ErrorKind::device:
    case ErrorKind::comm:
      return Exit::incomplete;
    case ErrorKind::store:
    case ErrorKind::internal:
      return Exit::tool;
  }
  return Exit::tool;
}

Exit exit_of(worker::Status status, bool oom_is_an_answer) {
  switch (status) {
    case worker::Status::ok:
    case worker::Status::unsupported:
    case worker::Status::skipped:
      return Exit::well;
    case worker::Status::check_failed:
      return Exit::wrong;
    case worker::Status::oom:
      return oom_is_an_answer ? Exit::well : Exit::incomplete;
    case worker::Status::timeout:
    case worker::Status::crashed:
    case worker::Status::error:
    case worker::Status::aborted:
      return Exit::incomplete;
  }
  return Exit::tool;
}

}  // namespace syslab::cli
