#include "runner/isolation.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace syslab::runner {

std::string_view to_string(Isolation isolation) {
  return isolation == Isolation::reuse ? "reuse" : isolation == Isolation::per_case ? "case" : "device";
}

Isolation parse_isolation(std::string_view text) {
  for (const Isolation isolation : {Isolation::by_device, Isolation::per_case, Isolation::reuse}) {
    if (text == to_string(isolation)) return isolation;
  }
  throw Error(ErrorKind::usage, fmt::format("unknown isolation '{}' (known: case, device, reuse)", text));
}

}  // namespace syslab::runner
