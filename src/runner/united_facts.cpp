#include "runner/united_facts.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace syslab::runner {
namespace {

bool adds_up(const std::string& name) {
  static const std::set<std::string> names{"samples", "verified", "warmup_calls", "cpu_time_s"};
  return names.contains(name);
}

// One fact for all ranks; null if they disagree in a way that only each rank's own facts can show.
Json united(const std::string& name, const std::vector<Json>& values) {
  if (name == "exit" || name == "stderr_tail") return values.back();
  const auto all = [&](auto holds) { return std::all_of(values.begin(), values.end(), holds); };
  if (all([](const Json& it) { return it.is_number(); })) {
    if (name == "max_rss_bytes") return *std::max_element(values.begin(), values.end());
    if (adds_up(name)) {
      const bool whole = all([](const Json& it) { return it.is_number_integer(); });
      double sum = 0;
      for (const Json& value : values) sum += value.get<double>();
      return whole ? Json(static_cast<std::int64_t>(sum)) : Json(sum);
    }
  }
  if (all([&](const Json& it) { return it == values.front(); })) return values.front();
  Json list = Json::array();
  const auto add = [&list](const Json& one) {
    if (std::find(list.begin(), list.end(), one) == list.end()) list.push_back(one);
  };
  if (all([](const Json& it) { return it.is_array(); })) {
    for (const Json& value : values) std::for_each(value.begin(), value.end(), add);
    return list;
  }
  if (!all([](const Json& it) { return it.is_string(); })) return nullptr;
  std::for_each(values.begin(), values.end(), add);
  std::string text;
  for (const Json& one : list) text += (text.empty() ? "" : ", ") + one.get<std::string>();
  return text;
}

}  // namespace

Json united_facts(const std::vector<Json>& each) {
  Json facts = Json::object();
  std::map<std::string, std::vector<Json>> values;
  for (const Json& one : each) {
    for (const auto& [name, value] : one.items()) values[name].push_back(value);
  }
  for (const char* own : {"status", "ranks", "launches"}) values.erase(own);
  for (const auto& [name, found] : values) {
    Json fact = united(name, found);
    if (!fact.is_null()) facts[name] = std::move(fact);
  }
  return facts;
}

}  // namespace syslab::runner
