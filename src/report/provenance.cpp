#include "report/provenance.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/text/json_text.hpp"
#include "core/text/text.hpp"
#include "report/cells.hpp"
#include "report/text.hpp"
#include "store/cells.hpp"

namespace syslab::report {
namespace {

constexpr std::size_t kMostRunsNamed = 3;
constexpr std::size_t kRevisionCharacters = 9;

// Newest first. `caches`: how the inputs met the cache, as the attempts of this run say.
constexpr std::string_view kRunsSql = R"(
SELECT r.uid, r.argv, r.protocol, b.git_sha, b.git_dirty, en.comparability_key, en.cpu_model, en.gpu_name,
       coalesce(en.facts ->> '$.cpu.usable', en.facts ->> '$.cpu.logical') AS threads,
       (SELECT group_concat(DISTINCT f.facts ->> '$.cache')
          FROM attempt a JOIN attempt_facts f ON f.attempt_id = a.id WHERE a.run_id = r.id) AS caches,
       EXISTS (SELECT 1 FROM arrival ar WHERE ar.run_uid = r.uid AND NOT ar.trusted) AS self_reported
  FROM run r
  JOIN v_environment en ON en.environment_id = r.environment_id
  JOIN v_build b ON b.build_id = r.build_id
 WHERE r.uid IN ({})
 ORDER BY r.started_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), r.started_at DESC, r.uid DESC)";
constexpr std::size_t kMostRuns = 500;  // SQLite takes no more than 999 parameters everywhere

void add_unless_empty(std::vector<std::string>& list, std::string text) {
  if (!text.empty() && std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

std::string device_of(const store::ResultSet& runs, std::size_t row) {
  const std::string gpu = plain(cell_of(runs, row, "gpu_name"));
  if (!gpu.empty()) return gpu;
  const std::string cpu = plain(cell_of(runs, row, "cpu_model"));
  const std::string threads = plain(cell_of(runs, row, "threads"));
  return fmt::format("CPU {}{}, no GPU", cpu.empty() ? "of unknown model" : cpu,
                     threads.empty() ? "" : fmt::format(" ({} threads)", threads));
}

// The stored protocol is an object with a name (views read '$.name'); an older run may hold the bare name.
std::string protocol_name(const std::string& stored) {
  const Json json = json_or_discarded(stored);
  if (json.is_object() && json.contains("name") && json["name"].is_string()) return json["name"];
  return json.is_string() ? json.get<std::string>() : std::string();
}

// ", zeros inputs" where they were not the usual ones, as v_attempt has it.
std::string unusual_inputs(const std::string& stored) {
  const Json json = json_or_discarded(stored);
  const Json data = json.is_object() ? json.value("data", Json()) : Json();
  return data.is_string() && data != "normal" ? fmt::format(", {} inputs", data.get<std::string>()) : "";
}

bool asks_for_smoke(const std::string& argv_json) {
  const Json argv = json_or_discarded(argv_json);
  if (!argv.is_array()) return false;
  return std::any_of(argv.begin(), argv.end(), [](const Json& word) {
    return word.is_string() && (word == "smoke" || word == "--preset=smoke");
  });
}

}  // namespace

std::string command_line(const std::string& argv_json) {
  const Json argv = json_or_discarded(argv_json);
  if (!argv.is_array() || argv.empty()) return {};
  std::vector<std::string> words;
  for (const Json& word : argv) {
    if (word.is_string()) words.push_back(word);
  }
  // The first word is the program where it was given; a stored command may also begin with the verb.
  const std::string program = words.empty() ? "" : std::filesystem::path(words.front()).filename().string();
  if (program == "syslab") {
    words.front() = program;
  } else {
    words.insert(words.begin(), "syslab");
  }
  for (std::string& word : words) word = shell_word(word);
  return fmt::format("{}", fmt::join(words, " "));
}

std::string Provenance::footnote() const {
  if (runs.empty()) return {};
  std::vector<std::string> named;
  for (std::size_t i = 0; i < std::min(runs.size(), kMostRunsNamed); ++i) named.push_back(short_uid(runs[i]));
  std::string text = unmarked(fmt::format("{} · protocol {} · revision {} · {} {}", fmt::join(devices, "; "),
                                          fmt::join(protocols, "; "),
                                          revisions.empty() ? "unknown" : fmt::format("{}", fmt::join(revisions, ", ")),
                                          runs.size() == 1 ? "run" : "runs", fmt::join(named, ", ")));
  if (runs.size() > kMostRunsNamed) text += fmt::format(" and {} more", runs.size() - kMostRunsNamed);
  std::vector<std::string> shown;
  for (const std::string& command : commands) {
    if (shown.size() < kMostRunsNamed) shown.push_back("`" + unmarked(command) + "`");
  }
  return text + " · remade by " + fmt::format("{}", fmt::join(shown, ", "));
}

std::string Provenance::note() const {
  std::string note;
  if (modified > 0) note = "Modified build";
  if (modified > 0 && modified < runs.size()) note += fmt::format(" in {} of {} runs", modified, runs.size());
  if (machines.size() > 1) note += fmt::format("{}{} kinds of machine", note.empty() ? "" : "; ", machines.size());
  if (!self_reported.empty()) note += note.empty() ? "Self-reported" : "; self-reported";
  if (!self_reported.empty() && self_reported.size() < runs.size()) {
    note += fmt::format(": {} of {} runs", self_reported.size(), runs.size());
  }
  return note.empty() ? note : note + ".";
}

std::string Provenance::warning() const {
  if (smoke_runs.empty()) return {};
  const bool all = smoke_runs.size() == runs.size();
  if (only_quick) {
    return fmt::format("{} on {}: few samples, so that an interval is wide, or there is none.",
                       all ? "Protocol quick" : "Partly protocol quick", fmt::join(devices, "; "));
  }
  return fmt::format("{} on {}: made to see that everything works; its times are no results.",
                     all ? "Smoke run" : "Partly from a smoke run", fmt::join(devices, "; "));
}

Provenance provenance_of(const store::ResultSet& result, const store::Store& store) {
  Provenance provenance;
  std::set<std::string> uids;
  if (find_column(result, "run_uid")) {
    for (std::size_t row = 0; row < result.rows.size(); ++row) uids.insert(plain(cell_of(result, row, "run_uid")));
  }
  uids.erase("");
  if (uids.empty()) return provenance;

  // A UUIDv7 sorts by time: of too many runs the newest are told of.
  std::vector<store::Cell> parameters;
  for (auto uid = uids.rbegin(); uid != uids.rend() && parameters.size() < kMostRuns; ++uid) {
    parameters.push_back(store::text_cell(*uid));
  }
  const std::string marks = fmt::format("{}", fmt::join(std::vector<char>(parameters.size(), '?'), ", "));
  const store::ResultSet runs = store.query(fmt::format(kRunsSql, marks), parameters);
  for (std::size_t row = 0; row < runs.rows.size(); ++row) {
    const std::string argv = plain(cell_of(runs, row, "argv"));
    const std::string stored = plain(cell_of(runs, row, "protocol"));
    const std::string protocol = protocol_name(stored), shown = protocol + unusual_inputs(stored);
    const std::string caches = plain(cell_of(runs, row, "caches"));
    std::string revision = plain(cell_of(runs, row, "git_sha")).substr(0, kRevisionCharacters);
    const bool is_modified = plain(cell_of(runs, row, "git_dirty")) == "1";
    if (is_modified) revision += " + changes";
    provenance.modified += is_modified ? 1 : 0;
    add_unless_empty(provenance.machines, plain(cell_of(runs, row, "comparability_key")));
    add_unless_empty(provenance.devices, device_of(runs, row));
    add_unless_empty(provenance.protocols, caches.empty() ? shown : fmt::format("{} ({})", shown, caches));
    add_unless_empty(provenance.revisions, revision);
    provenance.runs.push_back(plain(cell_of(runs, row, "uid")));
    if (plain(cell_of(runs, row, "self_reported")) == "1") provenance.self_reported.push_back(provenance.runs.back());
    add_unless_empty(provenance.commands, command_line(argv));
    const bool smoke = asks_for_smoke(argv);
    if (protocol == "quick" || smoke) {
      provenance.only_quick = (provenance.only_quick || provenance.smoke_runs.empty()) && !smoke;
      provenance.smoke_runs.push_back(plain(cell_of(runs, row, "uid")));
    }
  }
  return provenance;
}

}  // namespace syslab::report
