#include "session/exit_code.hpp"

#include <algorithm>
#include <array>

namespace syslab::cli {

Exit worse(Exit a, Exit b) {
  constexpr std::array kPrecedence{Exit::tool,       Exit::usage,   Exit::wrong, Exit::slower,
                                   Exit::incomplete, Exit::unclear, Exit::well};
  return *std::find_if(kPrecedence.begin(), kPrecedence.end(), [&](Exit one) { return one == a || one == b; });
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
