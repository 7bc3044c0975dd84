#include "registry/ladder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/dtype.hpp"
#include "core/error.hpp"

namespace syslab::registry {

std::vector<Implementation> implementations_of(const RungInfos& ladder) {
  std::vector<Implementation> shown;
  for (const RungInfo& rung : ladder) {
    Implementation& one = shown.emplace_back();
    one.name = rung.name;
    one.teaches = rung.teaches;
    one.role = rung.role;
    one.unavailable = rung.unavailable;
    one.device = rung.device;
    one.minimum_sm = rung.minimum_sm;
    one.maximum_sm = rung.maximum_sm;
    one.takes = rung.takes;
    one.facts = rung.facts;
    if (rung.tf32) one.facts.push_back({"tf32", "1", ""});
    if (rung.op_by_op) one.facts.push_back({"op_by_op", "1", ""});
    for (const DType dtype : rung.dtypes) one.dtypes.emplace_back(to_string(dtype));
  }
  return shown;
}

std::vector<RungFact> facts_of(const Implementation& one) {
  std::vector<RungFact> facts{{"device", std::string(to_string(one.device)), ""}};
  const auto add = [&](const char* name, std::string value) {
    if (!value.empty() && value != "0") facts.push_back({name, std::move(value), ""});
  };
  add("role", std::string(to_string(one.role)));
  add("dtypes", fmt::format("{}", fmt::join(one.dtypes, ", ")));
  add("minimum_sm", std::to_string(one.minimum_sm));
  add("maximum_sm", std::to_string(one.maximum_sm));
  facts.insert(facts.end(), one.facts.begin(), one.facts.end());
  return facts;
}

Values names_of(const RungInfos& ladder, const std::vector<std::string>& without) {
  Values names;
  for (const RungInfo& rung : ladder) {
    if (is_oracle(rung.role) || std::ranges::count(without, rung.name) > 0) continue;
    names.emplace_back(rung.name);
  }
  return names;
}

std::vector<Axis> axes_of(std::vector<Axis> axes, std::map<std::string, Values> instead) {
  for (Axis& axis : axes) {
    auto other = instead.extract(axis.name);
    if (!other) continue;
    std::swap(axis.values, other.mapped());
    for (Value& usual : other.mapped()) {
      if (axis.closed && !axis.accepts(usual)) axis.also.push_back(std::move(usual));
    }
    std::erase_if(axis.also, [&](const Value& value) { return std::ranges::count(axis.values, value) > 0; });
  }
  if (!instead.empty()) throw Error(ErrorKind::internal, "there is no axis '" + instead.begin()->first + "' to change");
  return axes;
}

}  // namespace syslab::registry
