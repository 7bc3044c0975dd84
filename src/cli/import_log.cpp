#include "cli/import_log.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/import_rules.hpp"
#include "core/error.hpp"
#include "core/files/hash.hpp"
#include "core/ids.hpp"
#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "core/text/short_name.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "runner/environment.hpp"
#include "runner/slowest.hpp"
#include "runner/verdict.hpp"

namespace syslab::cli {
namespace {

using registry::Experiment;

// A missing key and a null are the same, as everywhere in the protocol.
std::string text_of(const Json& json, const char* key, const std::string& otherwise = {}) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return otherwise;
  if (!found->is_string())
    throw Error(ErrorKind::usage, fmt::format("'{}' must be a text, found {}", key, found->dump()));
  return found->get<std::string>();
}

// A name that tables repeat in each row.
std::string name_of(const Json& json, const char* key, const std::string& otherwise = {}) {
  std::string name = text_of(json, key, otherwise);
  require_short_name(fmt::format("'{}'", key), name);
  return name;
}

// A seed is 64 bits as a decimal text, or a number.
std::string seed_of(const Json& json) {
  const auto found = json.find("seed");
  if (found == json.end() || found->is_null()) return "0";
  if (found->is_number_unsigned()) return found->dump();
  if (found->is_string()) {
    const auto& digits = found->get_ref<const std::string&>();
    std::uint64_t seed = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seed);
    if (error == std::errc{} && end == digits.data() + digits.size()) return std::to_string(seed);
  }
  throw Error(ErrorKind::usage,
              fmt::format("'seed' must be an unsigned 64-bit number as text, found {}", found->dump()));
}

int world_size_of(const Json& json) {
  const auto found = json.find("world_size");
  if (found == json.end() || found->is_null()) return 1;
  const std::int64_t size = found->is_number_integer() ? found->get<std::int64_t>() : 0;
  if (size >= 1 && size <= INT32_MAX) return static_cast<int>(size);
  throw Error(ErrorKind::usage,
              fmt::format("'world_size' must be a whole number of at least 1, found {}", found->dump()));
}

UtcTime time_of(const Json& json, const char* key, UtcTime otherwise) {
  const std::string text = text_of(json, key);
  return text.empty() ? otherwise : utc_time(key, text);
}

Json object_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return Json::object();
  if (!found->is_object()) {
    throw Error(ErrorKind::usage, fmt::format("'{}' must be an object, found {}", key, found->dump()));
  }
  return *found;
}

Value typed_value(const Experiment& experiment, const Axis& axis, const Json& json) {
  Value value = value_from_json(json);
  const Value& like = axis.values.front();
  if (std::holds_alternative<double>(like) && std::holds_alternative<std::int64_t>(value)) {
    value = static_cast<double>(std::get<std::int64_t>(value));
  }
  if (value.index() != like.index() || !axis.accepts(value)) {
    throw Error(ErrorKind::usage, fmt::format("axis '{}' of {} does not take {}; it takes values like {}", axis.name,
                                              experiment.id, json_text(json), syslab::to_string(like)));
  }
  return value;
}

// Every axis of the experiment, once. An axis with a single declared value may be left out.
Params params_of(const Experiment& experiment, const Json& given) {
  std::vector<std::string> known;
  Params params;
  for (const Axis& axis : experiment.axes) {
    known.push_back(axis.name);
    const auto found = given.find(axis.name);
    if (found != given.end()) {
      params.set(axis.name, typed_value(experiment, axis, *found));
    } else if (axis.values.size() == 1) {
      params.set(axis.name, axis.values.front());
    } else {
      throw Error(ErrorKind::usage, fmt::format("params say nothing of axis '{}' of {}", axis.name, experiment.id));
    }
  }
  for (const auto& [name, value] : given.items()) {
    if (!params.has(name)) throw Error(ErrorKind::usage, unknown_name("axis of " + experiment.id, name, known));
  }
  return params;
}

class Reader {
 public:
  Reader(const registry::Registry& registry, std::string_view text)
      : registry_(registry), digest_(sha256_hex(text)), now_(utc_time("now", utc_now())) {
    set_run(Json::object());
  }

  void take(const Json& line) {
    const std::string type = line.is_object() ? text_of(line, "type") : "";
    if (type == "run") {
      if (!read_.plan.empty()) throw Error(ErrorKind::usage, "'run' comes first, before every case");
      set_run(line);
    } else if (type == "case") {
      if (open_) throw Error(ErrorKind::usage, "a case begins before the one before it has its 'end'");
      begin(line);
    } else if (type == "hello" || type == "bye" || type == "progress") {
      // What a recorded conversation also holds.
    } else if (!open_) {
      throw Error(ErrorKind::usage, fmt::format("'{}' stands outside a case; a case begins with type 'case'", type));
    } else {
      add(worker::record_from_json(line), line);
    }
  }

  ImportedRun finish() {
    if (open_) throw Error(ErrorKind::usage, "the last case has no 'end'; the log is cut short");
    if (read_.plan.empty()) throw Error(ErrorKind::usage, "there is no case in it");
    return std::move(read_);
  }

 private:
  void set_run(const Json& line) {
    store::RunRow& run = read_.run;
    run.verb = "import";
    run.label = text_of(line, "label");
    run.author = name_of(line, "author");
    run.root_seed = seed_of(line);
    run_began_ = time_of(line, "started_at", now_);
    Json protocol = object_of(line, "protocol");
    if (text_of(protocol, "name").empty()) protocol["name"] = "imported";
    text_of(protocol, "data");  // refused unless a text: it becomes part of the protocol's name in tables
    run.protocol_json = json_text(protocol);
    run.build_json = json_text(object_of(line, "build"));
    const Json environment = object_of(line, "environment");
    run.environment_json = json_text(environment);
    // A machine without a description is comparable only with itself, within this log.
    run.comparability_key =
        environment.empty() ? sha256_hex("imported " + digest_) : runner::comparability_key(environment);
  }

  void begin(const Json& line) {
    const Experiment& experiment = registry_.find(text_of(line, "experiment"));
    if (task_of(text_of(line, "task", std::string(to_string(Task::measure)))) != Task::measure) {
      throw Error(ErrorKind::usage, "only measured cases can be imported, no searches of laws");
    }
    store::PlanRow row;
    row.seq = static_cast<int>(read_.plan.size());
    row.experiment = experiment.id;
    row.version = text_of(line, "version", experiment.version);
    row.params = params_of(experiment, object_of(line, "params"));
    row.case_uid = case_uid(row.experiment, row.version, row.params);
    row.implementation.name = name_of(line, "implementation");
    if (row.implementation.name.empty()) throw Error(ErrorKind::usage, "a case needs the name of its 'implementation'");
    // Someone else's implementation, even under the name of one of ours: this binary did not run it.
    row.implementation.is_mine = true;
    row.implementation.language = name_of(line, "language", "unknown");
    row.implementation.digest = text_of(line, "digest", "log " + digest_);
    row.world_size = world_size_of(line);
    row.task = Task::measure;
    row.seed = seed_of(line);
    read_.plan.push_back(std::move(row));
    store::AttemptRow attempt;
    attempt.plan_seq = read_.plan.back().seq;
    case_began_ = time_of(line, "started_at", run_began_);
    attempt.started_at = to_text(case_began_);
    experiment_ = &experiment;
    read_.attempts.push_back(std::move(attempt));
    facts_ = Json::object();
    open_ = true;
  }

  void add(worker::Record record, const Json& line) {
    store::AttemptRow& attempt = read_.attempts.back();
    if (const auto* fact = std::get_if<worker::FactRecord>(&record)) {
      facts_.update(parse_json(fact->json));
    } else if (const auto* end = std::get_if<worker::EndRecord>(&record)) {
      check_metrics_against_samples(attempt.records);
      const worker::EndRecord believed = runner::believed(*end, attempt.records);
      attempt.status = believed.status;
      attempt.detail = believed.detail;
      const UtcTime ended = time_of(line, "ended_at", case_began_);
      if (ended < case_began_) {
        throw Error(ErrorKind::usage,
                    fmt::format("the case ended at {}, before it began at {}", to_text(ended), attempt.started_at));
      }
      attempt.ended_at = to_text(ended);
      for (worker::MetricRecord& metric : runner::metrics_of_all_ranks(attempt.records)) {
        attempt.records.emplace_back(std::move(metric));
      }
      facts_["imported"] = true;  // whatever the log says
      attempt.facts_json = json_text(facts_);
      open_ = false;
    } else {
      check_record(record, *experiment_, read_.plan.back().world_size);
      attempt.records.push_back(std::move(record));
    }
  }

  const registry::Registry& registry_;
  ImportedRun read_;
  std::string digest_;
  UtcTime now_, run_began_, case_began_;
  const Experiment* experiment_ = nullptr;  // of the open case
  Json facts_;
  bool open_ = false;  // a case has begun and not ended
};

}  // namespace

ImportedRun read_log(const registry::Registry& registry, std::string_view text, const std::string& shown_as) {
  Reader reader(registry, text);
  std::size_t number = 0;
  try {
    for (const std::string& line : split(text, '\n')) {
      ++number;
      if (trim(line).empty()) continue;
      if (const std::string fault = object_fault(line); !fault.empty()) {
        throw Error(ErrorKind::usage, "this is " + fault);
      }
      reader.take(parse_json(line));
    }
    return reader.finish();
  } catch (const Error& error) {
    throw Error(ErrorKind::usage, fmt::format("'{}', line {}: {}; nothing was imported", one_line(shown_as), number,
                                              one_line(error.what())));
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::usage, fmt::format("'{}', line {}: {}; nothing was imported", one_line(shown_as), number,
                                              one_line(error.what())));
  }
}

}  // namespace syslab::cli
