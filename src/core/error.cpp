#include "core/error.hpp"

#include <fmt/format.h>

#include <system_error>
#include <utility>

namespace syslab {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return "usage";
    case ErrorKind::config:
      return "config";
    case ErrorKind::oom:
      return "oom";
    case ErrorKind::device:
      return "device";
    case ErrorKind::comm:
      return "comm";
    case ErrorKind::check:
      return "check";
    case ErrorKind::store:
      return "store";
    case ErrorKind::internal:
      return "internal";
  }
  return "internal";
}

Error::Error(ErrorKind kind, const std::string& message, std::string call)
    : std::runtime_error(message), kind_(kind), call_(std::move(call)) {}

void throw_errno(ErrorKind kind, std::string_view action, int errno_value, std::string call) {
  // std::system_category's message is thread safe where strerror is not.
  throw Error(kind, fmt::format("cannot {}: {}", action, std::system_category().message(errno_value)), std::move(call));
}

}  // namespace syslab
