#include "session/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/build_info.hpp"
#include "core/contains.hpp"
#include "core/error.hpp"
#include "core/ids.hpp"
#include "core/process/environment_variable.hpp"
#include "core/text/json_text.hpp"
#include "core/text/path_list.hpp"
#include "core/text/text.hpp"
#include "measure/protocol.hpp"
#include "registry/ladder.hpp"
#include "runner/environment.hpp"
#include "session/attempt_queue.hpp"
#include "session/forecast.hpp"
#include "session/progress.hpp"
#include "session/selection.hpp"
#include "session/stored_object.hpp"
#include "session/summary.hpp"
#include "session/unusable.hpp"
#include "store/cells.hpp"

namespace syslab::cli {
namespace {

store::ImplementationRow implementation_row(const plan::Plan& plan, const plan::PlannedCase& planned) {
  store::ImplementationRow row;
  row.name = planned.implementation;
  for (const Submitted& mine : plan.mine) {
    if (mine.name != planned.implementation) continue;
    row.is_mine = true;
    row.digest = mine.digest;
    row.language = mine.is_command() ? "a program" : mine.is_python() ? "Python" : "C";
    row.path = path_of(mine);
    if ((mine.is_function() || mine.is_command()) && mine.name == plan::kReferenceName)
      row.role = to_string(Role::peer);  // what else there is
    return row;
  }
  // Our own sources are those of the revision that this binary was built from.
  row.digest = build_info().git_sha;
  if (build_info().git_dirty) row.digest += "+" + build_info().git_diff.substr(0, 12);
  row.language = "C++";
  if (const registry::Implementation* known = planned.experiment->find_implementation(planned.implementation)) {
    row.role = to_string(known->role);
  }
  return row;
}

// Options that a command for one of these cases needs to measure it the same way.
std::string common_flags(const Conditions& conditions, std::uint64_t root_seed) {
  const Conditions defaults;
  std::string flags;
  if (root_seed != 0) flags += fmt::format(" --seed {}", root_seed);
  if (conditions.timeout != defaults.timeout) {
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(conditions.timeout).count();
    flags += milliseconds % 1000 == 0 ? fmt::format(" --timeout {}s", milliseconds / 1000)
                                      : fmt::format(" --timeout {}ms", milliseconds);
  }
  if (conditions.memory_limit_bytes != 0) flags += fmt::format(" --memory-limit {}", conditions.memory_limit_bytes);
  return flags;
}

std::string run_flags(const Conditions& conditions, std::uint64_t root_seed) {
  const Conditions defaults;
  std::string flags;
  if (conditions.launches != measure::find_protocol(conditions.protocol).launches) {
    flags += fmt::format(" --launches {}", conditions.launches);
  }
  if (conditions.isolation != defaults.isolation) {
    flags += fmt::format(" --isolation {}", runner::to_string(conditions.isolation));
  }
  if (conditions.data != defaults.data) flags += " --data " + conditions.data;
  if (conditions.try_oom) flags += " --try-oom";
  return flags + common_flags(conditions, root_seed);
}

std::string check_flags(const Conditions& conditions, std::uint64_t root_seed) {
  const Conditions defaults;
  const std::string cases = conditions.law_cases == defaults.law_cases ? ""
                            : conditions.within.count() > 0            ? " --deep"
                                                            : fmt::format(" --cases {}", conditions.law_cases);
  return cases + common_flags(conditions, root_seed);
}

// Of whoever chose an interpreter, by whichever way: the commands that are told are typed elsewhere, too.
std::string python_flag(const plan::Plan& plan) {
  const std::string chosen = environment_variable("SYSLAB_PYTHON");
  const bool wanted = !chosen.empty() && std::ranges::any_of(plan.mine, &Submitted::is_python);
  return wanted ? " --python " + shell_word(chosen) : "";
}

Rerun rerun_of(const Context& context, const plan::Plan& plan, const Conditions& conditions) {
  return {plan.mine,
          conditions.protocol,
          run_flags(conditions, plan.root_seed),
          check_flags(conditions, plan.root_seed),
          db_flag(context.global),
          python_flag(plan)};
}

std::string failed_check(const store::Store& store, const std::string& attempt_uid) {
  const store::ResultSet found = store.query(
      "SELECT k.uid FROM check_result k JOIN attempt a ON a.id = k.attempt_id"
      " WHERE a.uid = ?1 AND k.outcome IN ('falsified', 'error') ORDER BY k.id LIMIT 1",
      {store::text_cell(attempt_uid)});
  return found.rows.empty() ? "" : found.rows[0][0].text;
}

Json attempt_json(const std::string& uid, const std::string& run_uid, const runner::AttemptResult& result) {
  Json json = plan::to_json(*result.planned);
  json["type"] = "attempt";
  json["attempt"] = uid;
  json["run"] = run_uid;
  json["status"] = syslab::to_string(result.status);
  json["detail"] = result.detail;
  json["seconds"] = Seconds(result.wall).count();
  Json metrics = Json::object();
  for (const worker::Record& record : result.records) {
    // For several ranks, the figure of all together, which comes last; otherwise the first one's.
    if (const auto* metric = std::get_if<worker::MetricRecord>(&record); metric != nullptr && metric->value) {
      if (metric->rank <= 0) metrics[metric->name] = *metric->value;
    }
  }
  json["metrics"] = metrics;
  put(json, finding_of(result));
  if (const std::optional<NoTime> why = no_time(result.facts_json)) json["no_time"] = stats::to_string(why->reason);
  if (const auto warnings = of_results(timing_warnings(result.facts_json)); !warnings.empty()) {
    json["warnings"] = stats::to_json(warnings);
  }
  return json;
}

}  // namespace

Json to_json(const Conditions& conditions) {
  Json json = measure::to_json(measure::find_protocol(conditions.protocol));
  json["data"] = conditions.data;
  json["law_cases"] = conditions.law_cases;
  json["timeout_ns"] = conditions.timeout.count();
  json["memory_limit_bytes"] = conditions.memory_limit_bytes;
  json["try_oom"] = conditions.try_oom;
  json["launches"] = conditions.launches;
  json["isolation"] = runner::to_string(conditions.isolation);
  json["mine_device"] = to_string(conditions.mine_device);
  if (!conditions.mine_sources.empty()) json["mine_sources"] = conditions.mine_sources;
  json["budget_ns"] = conditions.budget.count();
  if (!conditions.asks_for_times) json["asks_for_times"] = false;
  if (conditions.until.count() > 0) json["until_ns"] = conditions.until.count();
  if (conditions.within.count() > 0) json["within_ns"] = conditions.within.count();
  return json;
}

// Error(store) for a word that is no device.
static DeviceKind mine_device_in(const StoredObject& json) {
  const std::string word = json.value("mine_device", std::string(to_string(DeviceKind::cpu)));
  if (const std::optional<DeviceKind> kind = device_kind_of(word)) return *kind;
  throw Error(ErrorKind::store,
              fmt::format("run.protocol, field 'mine_device': expected \"cpu\" or \"cuda\", found \"{}\"", word));
}

Conditions conditions_from_json(const std::string& text) {
  const StoredObject json("run.protocol", text);
  Conditions conditions;
  conditions.protocol = json.text("name");
  conditions.data = json.value("data", conditions.data);
  conditions.law_cases = json.value("law_cases", conditions.law_cases);
  conditions.timeout = Nanoseconds(json.value("timeout_ns", conditions.timeout.count()));
  conditions.memory_limit_bytes = json.value("memory_limit_bytes", conditions.memory_limit_bytes);
  conditions.try_oom = json.value("try_oom", conditions.try_oom);
  conditions.launches = json.value("launches", conditions.launches);
  conditions.isolation = runner::parse_isolation(json.value("isolation", std::string("case")));
  conditions.mine_device = mine_device_in(json);
  conditions.mine_sources = json.value("mine_sources", conditions.mine_sources);
  conditions.asks_for_times = json.value("asks_for_times", true);
  conditions.budget = Nanoseconds(json.value("budget_ns", conditions.budget.count()));
  conditions.until = Nanoseconds(json.value("until_ns", conditions.until.count()));
  conditions.within = Nanoseconds(json.value("within_ns", conditions.within.count()));
  return conditions;
}

std::string own_protocol(const std::vector<plan::PlannedCase>& cases, bool smoke) {
  if (smoke) return "quick";
  std::set<std::string> named;
  for (const plan::PlannedCase& planned : cases) named.insert(planned.experiment->protocol);
  return named.size() == 1 ? *named.begin() : "kernel";
}

Conditions to_conditions(const MeasuringOptions& options, const plan::Plan& plan, bool smoke) {
  const measure::Protocol protocol = measure::find_protocol(options.protocol.value_or(own_protocol(plan.cases, smoke)));
  Conditions conditions;
  conditions.protocol = protocol.name;
  conditions.launches = options.launches.value_or(protocol.launches);
  conditions.memory_limit_bytes = bytes_option("--memory-limit", options.memory_limit);
  conditions.try_oom = options.try_oom;
  conditions.mine_device = mine_device(plan);
  for (const Submitted& mine : plan.mine) conditions.mine_sources += mine.sources;
  return conditions;
}

DeviceKind mine_device(const plan::Plan& plan) {
  for (const plan::PlannedCase& planned : plan.cases) {
    for (const Submitted& mine : plan.mine) {
      if (mine.name == planned.implementation) return planned.device;
    }
  }
  return DeviceKind::cpu;
}

runner::RunOptions to_run_options(const Context& context, const Conditions& conditions) {
  runner::RunOptions options;
  options.places = context.places;
  static_cast<runner::RunSpec&>(options) = conditions;
  return options;
}

std::vector<store::PlanRow> plan_rows(const plan::Plan& plan) {
  std::vector<store::PlanRow> rows;
  rows.reserve(plan.cases.size());
  for (const plan::PlannedCase& planned : plan.cases) {
    store::PlanRow row;
    row.seq = planned.index;
    row.experiment = planned.experiment->id;
    row.version = planned.experiment->version;
    row.case_uid = planned.case_uid;
    row.params = planned.params;
    row.names_files = !planned.experiment->files_named_by(planned.params).empty();
    row.implementation = implementation_row(plan, planned);
    row.world_size = planned.world_size;
    row.task = planned.task;
    row.law = planned.law;
    row.seed = std::to_string(planned.seed);
    row.skip_reason = planned.skip_reason.value_or("");
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<store::RungFactRow> rung_facts(const plan::Plan& plan) {
  std::vector<store::RungFactRow> rows;
  std::set<std::pair<std::string, std::string>> known;
  for (const plan::PlannedCase& planned : plan.cases) {
    const auto is_it = [&](const Submitted& mine) { return mine.name == planned.implementation; };
    const registry::Implementation* ours = planned.experiment->find_implementation(planned.implementation);
    if (ours == nullptr || std::ranges::any_of(plan.mine, is_it)) continue;
    if (!known.emplace(planned.experiment->id, ours->name).second) continue;
    for (const RungFact& fact : registry::facts_of(*ours)) {
      rows.push_back({planned.experiment->id, ours->name, fact.name, fact.value, fact.unit});
    }
  }
  return rows;
}

void hide_from_judged(const std::vector<std::string>& paths) {
  std::vector<std::string> hidden = paths_in(environment_variable("SYSLAB_WALLS_HIDE"));
  for (const std::string& path : paths) {
    if (!contains(hidden, path)) hidden.push_back(path);
  }
  ::setenv("SYSLAB_WALLS_HIDE", path_list(hidden).c_str(), 1);  // workers inherit it
}

void hide_database(const std::string& file) {
  // SQLite keeps its other files beside the file that a link leads to.
  std::error_code none;
  const std::filesystem::path named = std::filesystem::absolute(file), real = std::filesystem::canonical(named, none);
  for (const std::string& database : {named.string(), real.string()}) {
    if (database.empty()) continue;
    hide_from_judged({database, database + "-wal", database + "-shm", database + "-journal"});
  }
}

store::Store open_for_writing(const Context& context) {
  store::Store store = store::Store::open(context.global.database, store::Mode::create);
  hide_database(context.global.database);
  for (const std::string& notice : store.notices()) context.console.note(notice);
  if (const int closed = store.close_abandoned(); closed > 0) {
    context.console.note(fmt::format("{} of a writer that is gone closed as aborted", counted(closed, "attempt")));
  }
  return store;
}

std::vector<std::string> command_words(const Context& context) {
  std::vector<std::string> words{"syslab"};
  words.insert(words.end(), context.arguments.begin(), context.arguments.end());
  return words;
}

store::RowId begin_run(const Context& context, store::Store& store, const std::string& verb, const std::string& label,
                       const plan::Plan& plan, const Conditions& conditions) {
  const Json facts = runner::environment_facts();
  store::RunRow run;
  run.verb = verb;
  run.label = label;
  run.argv = command_words(context);
  run.protocol_json = json_text(to_json(conditions));
  run.root_seed = std::to_string(plan.root_seed);
  run.author = plan.author;
  run.environment_json = json_text(facts);
  run.comparability_key = runner::comparability_key(facts);
  run.build_json = json_text(to_json(build_info()));
  run.rung_facts = rung_facts(plan);
  const std::size_t told = store.notices().size();
  const store::RowId row = store.begin_run(run, plan_rows(plan));
  for (std::size_t i = told; i < store.notices().size(); ++i) context.console.note(store.notices()[i]);
  return row;
}

std::string db_flag(const GlobalOptions& global) {
  return global.database == GlobalOptions().database ? "" : " --db " + shell_word(global.database);
}

Claim::Claim(store::Store& store, store::RowId run) : store_(store), run_(run) {
  if (const std::optional<std::string> other = store.claim_run(run)) {
    throw Error(ErrorKind::usage, fmt::format("run {} is still being run by {}; wait until it ends, or stop it",
                                              store.run_uid(run), *other));
  }
}

Claim::~Claim() {
  try {
    store_.release_run(run_);
  } catch (const std::exception&) {  // the next to ask finds that we are gone
  }
}

namespace {

// What run_plan() has to say, stored and told.
struct Stored {
  Summary summary;
  std::map<Status, int> counts;
  int left_out = 0;
};

// The attempts of a run, stored and told as they come.
class Attempts {
 public:
  Attempts(const Context& context, store::Store& store, store::RowId run, const plan::Plan& plan,
           const Conditions& conditions)
      : console_(context.console),
        store_(store),
        run_(run),
        run_uid_(store.run_uid(run)),
        asks_for_times_(conditions.asks_for_times),
        progress_(context.console, plan, Eta(plan), conditions.budget),
        usability_(plan),
        missing_(static_cast<std::int64_t>(plan.cases.size())),
        stored_{Summary(run_uid_, rerun_of(context, plan, conditions)), {}, 0},
        queue_(store, run, [this](const std::string& uid, const runner::AttemptResult& result) { tell(uid, result); }) {
  }
  Attempts(const Attempts&) = delete;
  Attempts& operator=(const Attempts&) = delete;

  runner::Observer observer() {
    runner::Observer observer;
    observer.started = [this](const plan::PlannedCase& planned) { start(planned); };
    observer.progress = [this](const plan::PlannedCase& planned, const worker::ProgressRecord& record) {
      progress_.said(planned, record.text);
    };
    observer.heartbeat = [this](const plan::PlannedCase& planned) {
      store_.heartbeat(attempt_uids_[planned.index]);
      progress_.heartbeat(planned);
    };
    observer.finished = [this](runner::AttemptResult result) {
      const auto uid = attempt_uids_.extract(result.planned->index);
      queue_.add(uid ? uid.mapped() : std::string(), std::move(result));
    };
    observer.left_out = [this](const plan::PlannedCase& planned, const std::string& why) { leave_out(planned, why); };
    return observer;
  }

  Stored end() {
    queue_.store_all();
    stored_.summary.add_missing(missing_);
    return std::move(stored_);
  }

 private:
  void start(const plan::PlannedCase& planned) {
    queue_.store_all();
    const std::string uid = attempt_uids_[planned.index] = new_uuid7();
    store_.attempt_started(run_, planned.index, uid);
    progress_.started(planned);
  }

  void leave_out(const plan::PlannedCase& planned, const std::string& why) {
    queue_.store_all();
    --missing_;
    progress_.left_out(planned);
    ++stored_.left_out;
    stored_.summary.add_left_out(planned, why);
  }

  // Only once it is stored, so that a reader of its line finds the attempt whatever happens to us.
  void tell(const std::string& uid, const runner::AttemptResult& result) {
    --missing_;
    if (console_.json()) console_.print_line(attempt_json(uid, run_uid_, result));
    usability_.require(result);
    progress_.finished(result);
    ++stored_.counts[result.status];
    stored_.summary.add(*result.planned, result.status, result.detail,
                        result.status == Status::check_failed ? failed_check(store_, uid) : "", finding_of(result));
    add_warnings(result);
  }

  void add_warnings(const runner::AttemptResult& result) {
    Summary& summary = stored_.summary;
    const std::vector<stats::TimingWarning> warnings = timing_warnings(result.facts_json);
    if (result.status == Status::unsupported && leave_unjudged(warnings)) {
      summary.add_not_judged(*result.planned, result.detail);
    } else if (result.status == Status::ok) {
      summary.add_warnings(of_results(warnings));
    }
    if (result.status != Status::ok || !asks_for_times_) return;
    if (const std::optional<NoTime> why = no_time(result.facts_json)) summary.add_no_time(*result.planned, *why);
    summary.add_warnings(warnings);
  }

  const Console& console_;
  store::Store& store_;
  store::RowId run_;
  std::string run_uid_;
  bool asks_for_times_;
  std::map<int, std::string> attempt_uids_;  // of the running cases, by their place in the plan
  Progress progress_;
  Usability usability_;
  std::int64_t missing_;  // cases that have neither ended nor been left out
  Stored stored_;
  AttemptQueue queue_;
};

Stored store_plan(const Context& context, store::Store& store, store::RowId run, const plan::Plan& asked,
                  const Conditions& conditions, const runner::Interruption* interruption) {
  const Claim claim(store, run);
  plan::Plan plan = asked;
  forecast(plan, &store, conditions);
  const Console& console = context.console;
  if (console.json()) {
    console.print_line({{"type", "run"}, {"run", store.run_uid(run)}, {"cases", plan.cases.size()}});
  }
  Attempts attempts(context, store, run, plan, conditions);
  const runner::RunOptions options = to_run_options(context, conditions);
  if (interruption != nullptr) {
    runner::run_plan(plan, options, attempts.observer(), *interruption);
  } else {
    runner::run_plan(plan, options, attempts.observer());
  }
  return attempts.end();
}

}  // namespace

Exit run_and_store(const Context& context, store::Store& store, store::RowId run, const plan::Plan& plan,
                   const Conditions& conditions, bool one_of_several) {
  const auto began = std::chrono::steady_clock::now();
  const Stored stored = store_plan(context, store, run, plan, conditions, nullptr);
  stored.summary.print(context, std::chrono::steady_clock::now() - began, one_of_several);
  return stored.summary.exit();
}

PartOutcome run_part(const Context& context, store::Store& store, store::RowId run, const plan::Plan& plan,
                     const Conditions& conditions, const runner::Interruption& interruption) {
  const Stored stored = store_plan(context, store, run, plan, conditions, &interruption);
  return {stored.summary.exit_of_tried(), stored.counts, stored.left_out};
}

}  // namespace syslab::cli
