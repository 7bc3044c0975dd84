// What every ladder's find_rung() does, once.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"

namespace syslab::ops {

// Error(usage) with the nearest names if the ladder of `operation` has no such rung.
template <typename Rung>
const Rung& find_rung(std::span<const Rung> ladder, std::string_view operation, std::string_view name) {
  std::vector<std::string> names;
  for (const Rung& rung : ladder) {
    if (rung.name == name) return rung;
    names.push_back(rung.name);
  }
  throw Error(ErrorKind::usage, unknown_name("implementation of " + std::string(operation), name, names));
}

}  // namespace syslab::ops
