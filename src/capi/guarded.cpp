#include "capi/guarded.hpp"

#include <fmt/format.h>

#include <string>

namespace syslab::capi {
namespace {

thread_local std::string text;

}  // namespace

const char* last_error() noexcept { return text.c_str(); }

void forget_error() noexcept { text.clear(); }

int status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
    case ErrorKind::config:
      return SYSLAB_ERROR_USAGE;
    case ErrorKind::oom:
      return SYSLAB_ERROR_OUT_OF_MEMORY;
    case ErrorKind::device:
      return SYSLAB_ERROR_DEVICE;
    case ErrorKind::comm:
    case ErrorKind::check:
    case ErrorKind::store:
    case ErrorKind::internal:
      break;
  }
  return SYSLAB_ERROR_INTERNAL;
}

int fail(int status, const char* function, const char* message) noexcept {
  try {
    text = fmt::format("{}: {}", function, message);
  } catch (...) {
    text.assign("out of memory");  // fits the string's own storage: allocates nothing
  }
  return status;
}

}  // namespace syslab::capi
