#include "session/stored_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "session/pooled_resolution.hpp"
#include "session/selection.hpp"
#include "stats/summary.hpp"
#include "store/cells.hpp"

namespace syslab::cli {
namespace {

// The slowest rank is the sample, as for every metric of several ranks. Launches that alone have no time count with the
// others, or none does (session/pooled_resolution.hpp).
constexpr const char* kSamples = R"(
SELECT t.experiment, t.params, t.implementation, t.world_size, t.version, t.attempt_uid, x.launch, max(x.value)
  FROM v_attempt t
  JOIN series s ON s.attempt_id = t.attempt_id AND s.name IN ('time', 'time_under_resolution') AND s.unit = 's'
  JOIN sample x ON x.series_id = s.id
 WHERE t.run_id = ?1 AND t.task = 'measure' AND t.status = 'ok' AND t.checked
 GROUP BY t.attempt_uid, x.launch, x.idx
 ORDER BY t.attempt_uid, x.launch)";

constexpr const char* kFacts = R"(
SELECT t.experiment, t.params, t.implementation, t.world_size, t.facts
  FROM v_attempt t
 WHERE t.run_id = ?1 AND t.task = 'measure' AND t.status = 'ok' AND t.checked)";

constexpr const char* kChecks = R"(
SELECT t.experiment, t.params, t.implementation, t.world_size, k.name, k.outcome
  FROM check_result k
  JOIN v_attempt t ON t.attempt_id = k.attempt_id
 WHERE t.run_id = ?1
 ORDER BY t.attempt_uid, k.id)";

constexpr const char* kConditions = R"(
SELECT en.comparability_key, en.facts, r.protocol
  FROM run r JOIN environment en ON en.id = r.environment_id
 WHERE r.id = ?1)";

std::map<CaseKey, PooledResolution> resolutions(const store::Store& store, store::RowId run) {
  std::map<CaseKey, PooledResolution> found;
  for (const auto& row : store.query(kFacts, {store::integer_cell(run)}).rows) {
    found[{row[0].text, row[1].text, row[2].text, row[3].integer}].take(row[4].text);
  }
  return found;
}

// "cpu.model" → its value as text, for the parts of the facts that speed depends on.
std::map<std::string, std::string> leaves(const Json& json, const std::string& path) {
  std::map<std::string, std::string> all;
  if (!json.is_structured()) {
    all[path] = json.is_string() ? json.get<std::string>() : json_text(json);
    return all;
  }
  for (const auto& [name, value] : json.items()) {
    all.merge(leaves(value, path.empty() ? name : path + "." + name));
  }
  return all;
}

std::string at(const std::map<std::string, std::string>& facts, const std::string& path) {
  const auto found = facts.find(path);
  return found == facts.end() ? "not told" : found->second;
}

void list_differences(const Json& a, const Json& b, const std::string& path, std::vector<std::string>& differing) {
  const auto left = leaves(a, path), right = leaves(b, path);
  std::map<std::string, std::string> both = left;
  both.insert(right.begin(), right.end());
  for (const auto& [name, value] : both) {
    const std::string of_a = at(left, name), of_b = at(right, name);
    if (of_a != of_b) differing.push_back(fmt::format("{}: A {}, B {}", name, of_a, of_b));
  }
}

// One card of eight is as fast as another.
Json steady(const Json& facts, const char* part) {
  Json json = facts.value(part, Json::object());
  if (!json.is_array()) return json;
  for (Json& gpu : json) {
    for (const char* own : {"uuid", "pci"}) gpu.erase(own);
  }
  return json;
}

// In what speed depends on: "cpu.model: A …, B …".
std::vector<std::string> differing_machines(const Json& facts_a, const Json& facts_b) {
  std::vector<std::string> differing;
  for (const char* part : {"cpu", "gpu", "cuda"}) {
    Json a = steady(facts_a, part), b = steady(facts_b, part);
    if (a.is_array() && b.is_array() && a.size() != b.size()) {  // and of those that only one has, nothing
      differing.push_back(fmt::format("{}s: A {}, B {}", part, a.size(), b.size()));
      const std::size_t both = std::min(a.size(), b.size());
      for (Json* const list : {&a, &b}) list->erase(list->begin() + static_cast<std::ptrdiff_t>(both), list->end());
    }
    list_differences(a, b, part, differing);
  }
  return differing;
}

}  // namespace

store::StoredRun find_run_or_pin(const store::Store& store, const std::string& name) {
  if (const auto pin = store.find_pin(name)) {
    if (auto run = store.find_run(pin->run_uid)) return *run;
    throw Error(ErrorKind::usage,
                fmt::format("pin '{}' names run {}, which is not in this database; `syslab merge` the "
                            "file that holds it",
                            name, pin->run_uid));
  }
  if (auto run = store.find_run(name)) return *run;
  throw Error(ErrorKind::usage,
              fmt::format("no run and no pin '{}' in this database; `syslab log` shows runs, `syslab pin` "
                          "lists pins",
                          name));
}

std::optional<Arrival> self_reported(const store::Store& store, const std::string& run_uid) {
  const auto rows =
      store.query("SELECT how, source FROM arrival WHERE run_uid = ?1 AND NOT trusted", {store::text_cell(run_uid)})
          .rows;
  return rows.empty() ? std::nullopt : std::optional(Arrival{rows[0][0].text, rows[0][1].text});
}

std::string CaseKey::title(const registry::Registry& registry) const {
  return case_label(registry, experiment, implementation, Params::from_json(parse_json(params)), world_size);
}

std::map<CaseKey, StoredTimes> stored_times(const store::Store& store, store::RowId run) {
  struct Launch {
    CaseKey key;
    std::string version;
    std::vector<double> seconds;
  };
  std::map<std::pair<std::string, std::int64_t>, Launch> launches;  // by attempt and number
  for (const auto& row : store.query(kSamples, {store::integer_cell(run)}).rows) {
    Launch& launch = launches[{row[5].text, row[6].integer}];
    launch.key = {row[0].text, row[1].text, row[2].text, row[3].integer};
    launch.version = row[4].text;
    if (row[7].type == store::Cell::Type::real) launch.seconds.push_back(row[7].real);
  }
  std::map<CaseKey, StoredTimes> times;
  for (auto& [name, launch] : launches) {
    if (launch.seconds.empty()) continue;
    std::sort(launch.seconds.begin(), launch.seconds.end());
    StoredTimes& of_case = times[launch.key];
    of_case.version = launch.version;
    of_case.launch_medians.push_back(stats::quantile(launch.seconds, 0.5));
    if (of_case.attempts.empty() || of_case.attempts.back() != name.first) of_case.attempts.push_back(name.first);
  }
  std::map<CaseKey, PooledResolution> resolution = resolutions(store, run);
  std::erase_if(times, [&](const auto& one) { return resolution[one.first].no_time().has_value(); });
  return times;
}

std::map<CaseKey, NoTime> stored_without_time(const store::Store& store, store::RowId run) {
  std::map<CaseKey, NoTime> found;
  for (const auto& [key, resolution] : resolutions(store, run)) {
    if (const std::optional<NoTime> why = resolution.no_time()) found.emplace(key, *why);
  }
  return found;
}

std::map<std::pair<CaseKey, std::string>, std::string> stored_checks(const store::Store& store, store::RowId run) {
  std::map<std::pair<CaseKey, std::string>, std::string> outcomes;
  for (const auto& row : store.query(kChecks, {store::integer_cell(run)}).rows) {
    outcomes[{{row[0].text, row[1].text, row[2].text, row[3].integer}, row[4].text}] = row[5].text;
  }
  return outcomes;
}

std::vector<std::string> differing_conditions(const store::Store& store, store::RowId a, store::RowId b) {
  const auto of_a = store.query(kConditions, {store::integer_cell(a)}).rows.at(0);
  const auto of_b = store.query(kConditions, {store::integer_cell(b)}).rows.at(0);
  std::vector<std::string> differing;
  if (of_a[0].text != of_b[0].text) {
    differing = differing_machines(parse_json(of_a[1].text), parse_json(of_b[1].text));
    if (differing.empty()) differing.push_back(fmt::format("kind of machine: A {}, B {}", of_a[0].text, of_b[0].text));
  }
  // How a case was measured. What ended it (timeouts, limits, budgets) does not change the times already taken.
  Json protocol_a = parse_json(of_a[2].text), protocol_b = parse_json(of_b[2].text);
  for (Json* protocol : {&protocol_a, &protocol_b}) {
    for (const char* limit :
         {"timeout_ns", "budget_ns", "until_ns", "within_ns", "memory_limit_bytes", "law_cases", "launches"}) {
      protocol->erase(limit);
    }
    if (!protocol->contains("version")) (*protocol)["version"] = 1;  // the first did not tell it
  }
  list_differences(protocol_a, protocol_b, "protocol", differing);
  return differing;
}

}  // namespace syslab::cli
