#include "report/published.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/resources.hpp"
#include "core/text/json_text.hpp"

namespace syslab::report {
namespace {

using nlohmann::json;

constexpr const char* kPublishedFile = "reports/published.json";
// Base units (s, B) in one of these.
const std::map<std::string, double> kUnitScales{{"ms", 1e-3}, {"s", 1.0}, {"GiB", 1024.0 * 1024.0 * 1024.0}};

[[noreturn]] void refuse_published(const std::string& why) {
  throw Error(ErrorKind::internal, fmt::format("{}: {}", kPublishedFile, why));
}

// Fields that all numbers of a series share; `params` and `value` differ.
json shared_part(const json& series, const json& sources) {
  const std::string source = series.at("source"), unit = series.at("unit");
  if (!sources.contains(source)) refuse_published(fmt::format("no source '{}'", source));
  const auto scale = kUnitScales.find(unit);
  if (scale == kUnitScales.end()) refuse_published(fmt::format("unknown unit '{}'", unit));
  const json& told = sources.at(source);
  const std::string note = told.value("note", "");
  return {{"experiment", series.at("experiment")},
          {"source", told.at("name")},
          {"note", series.value("note", note)},
          {"device", series.contains("device") ? series.at("device") : told.at("device")},
          {"world_size", series.value("world_size", 1)},
          {"implementations", series.value("implementation", json())},
          {"mine", series.value("mine", false)},
          {"metric", series.value("metric", "time")},
          {"unit", unit},
          {"scale", scale->second}};
}

void add_series(json& entries, const json& series, const json& sources) {
  const json shared = shared_part(series, sources);
  const json& axes = series.at("axes");
  for (const json& row : series.at("values")) {
    if (row.size() != axes.size() + 1 || !row.back().is_number()) {
      refuse_published(fmt::format("{}: {} does not fit the axes {}", json_text(shared.at("experiment")),
                                   json_text(row), json_text(axes)));
    }
    json entry = shared;
    entry["params"] = series.value("fixed", json::object());
    for (std::size_t i = 0; i < axes.size(); ++i) entry["params"][axes[i].get<std::string>()] = row[i];
    entry["value"] = row.back();
    entries.push_back(std::move(entry));
  }
}

}  // namespace

std::string published_entries(const std::string& text) {
  try {
    const json file = parse_json(text);
    json entries = json::array();
    for (const json& series : file.at("series")) add_series(entries, series, file.at("sources"));
    return json_text(entries);
  } catch (const json::exception& error) {
    refuse_published(error.what());
  }
}

const std::string& published_entries_of(const std::string& experiment) {
  static const std::map<std::string, std::string> all = [] {
    const auto text = find_resource(kPublishedFile);
    if (!text) throw Error(ErrorKind::internal, fmt::format("this binary does not carry '{}'", kPublishedFile));
    std::map<std::string, json> of;
    for (const json& entry : parse_json(published_entries(std::string(*text)))) {
      json& entries = of[entry.at("experiment").get<std::string>()];
      entries.push_back(entry);
    }
    std::map<std::string, std::string> texts;
    for (const auto& [name, entries] : of) texts[name] = json_text(entries);
    return texts;
  }();
  static const std::string none = "[]";
  const auto found = all.find(experiment);
  return found == all.end() ? none : found->second;
}

}  // namespace syslab::report
