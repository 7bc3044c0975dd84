// An operator's ladder and laws as the registry shows them. Templates, because the registry knows no operator: they
// take anything with the members they read.
#pragma once

#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "registry/experiment.hpp"

namespace syslab::registry {

// `ladder`: rungs with name, teaches, dtypes and is_peer (ops::RungInfo). The one called "reference" is the oracle.
template <typename Ladder>
std::vector<Implementation> implementations_of(const Ladder& ladder) {
  std::vector<Implementation> shown;
  for (const auto& rung : ladder) {
    Implementation& one = shown.emplace_back();
    one.name = rung.name;
    one.teaches = rung.teaches;
    one.is_reference = rung.name == "reference";
    one.is_peer = rung.is_peer;
    for (const DType dtype : rung.dtypes) one.dtypes.emplace_back(to_string(dtype));
  }
  return shown;
}

// `list`: laws with id, statement and against_oracle.
template <typename List>
std::vector<LawInfo> laws_of(const List& list) {
  std::vector<LawInfo> shown;
  for (const auto& law : list) shown.push_back({law.id, law.statement, law.against_oracle});
  return shown;
}

}  // namespace syslab::registry
