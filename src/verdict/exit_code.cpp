#include "verdict/exit_code.hpp"

#include <algorithm>
#include <array>

namespace syslab {

Exit worse(Exit a, Exit b) {
  constexpr std::array kPrecedence{Exit::tool,   Exit::usage,      Exit::requeue, Exit::wrong,
                                   Exit::slower, Exit::incomplete, Exit::unclear, Exit::well};
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

Exit exit_of(Status status, bool oom_is_an_answer) {
  switch (status) {
    case Status::ok:
    case Status::unsupported:
    case Status::skipped:
      return Exit::well;
    case Status::check_failed:
      return Exit::wrong;
    case Status::oom:
      return oom_is_an_answer ? Exit::well : Exit::incomplete;
    case Status::timeout:
    case Status::crashed:
    case Status::error:
    case Status::aborted:
      return Exit::incomplete;
  }
  return Exit::tool;
}

}  // namespace syslab
