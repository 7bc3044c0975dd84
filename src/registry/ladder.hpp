// An operator's ladder and laws as the registry shows them. Templates, because the registry knows no operator: they
// take anything with the members they read.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/dtype.hpp"
#include "core/error.hpp"
#include "registry/experiment.hpp"

namespace syslab::registry {

// `ladder`: rungs with name, teaches, dtypes, device, minimum_sm, is_peer and unavailable (ops::RungInfo). The one
// called "reference" is the oracle.
template <typename Ladder>
std::vector<Implementation> implementations_of(const Ladder& ladder) {
  std::vector<Implementation> shown;
  for (const auto& rung : ladder) {
    Implementation& one = shown.emplace_back();
    one.name = rung.name;
    one.teaches = rung.teaches;
    one.is_reference = rung.name == "reference";
    one.is_peer = rung.is_peer;
    one.unavailable = rung.unavailable;
    using Kind = std::remove_cvref_t<decltype(rung.device)>;
    one.device = rung.device == Kind::cuda ? "cuda" : "cpu";
    one.minimum_sm = rung.minimum_sm;
    if constexpr (requires { rung.takes; }) one.takes = rung.takes;
    for (const DType dtype : rung.dtypes) one.dtypes.emplace_back(to_string(dtype));
  }
  return shown;
}

// The names of a ladder's rungs, for a preset's "impl", but for `without` and the oracles ("reference…"): a preset that
// lists them by hand forgets the next one.
template <typename Ladder>
Values names_of(const Ladder& ladder, const std::vector<std::string>& without = {}) {
  Values names;
  for (const auto& rung : ladder) {
    if (rung.name.starts_with("reference") || std::ranges::count(without, rung.name) > 0) continue;
    names.emplace_back(rung.name);
  }
  return names;
}

// `list`: parameters with name, values, help, closed, also and by_handout (ops::ParamInfo). `instead`: other values by
// default; a closed axis goes on taking those that they stand for. Error(internal) if it names what is not in the list.
template <typename List>
std::vector<Axis> axes_of(const List& list, std::map<std::string, Values> instead = {}) {
  std::vector<Axis> axes;
  for (const auto& one : list) {
    axes.push_back({one.name, one.values, one.help, one.closed, one.also, one.by_handout});
    auto other = instead.extract(one.name);
    if (!other) continue;
    Axis& axis = axes.back();
    std::swap(axis.values, other.mapped());
    for (Value& usual : other.mapped()) {
      if (axis.closed && !axis.accepts(usual)) axis.also.push_back(std::move(usual));
    }
    std::erase_if(axis.also, [&](const Value& value) { return std::ranges::count(axis.values, value) > 0; });
  }
  if (!instead.empty()) throw Error(ErrorKind::internal, "there is no axis '" + instead.begin()->first + "' to change");
  return axes;
}

// `list`: laws with id, statement and against_oracle.
template <typename List>
std::vector<LawInfo> laws_of(const List& list) {
  std::vector<LawInfo> shown;
  for (const auto& law : list) shown.push_back({law.id, law.statement, law.against_oracle});
  return shown;
}

}  // namespace syslab::registry
