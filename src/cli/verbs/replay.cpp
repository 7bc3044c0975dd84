#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/verbs/verbs.hpp"
#include "core/error.hpp"
#include "core/ids.hpp"
#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "session/selection.hpp"
#include "session/session.hpp"
#include "session/stored_case.hpp"
#include "submission/folder.hpp"
#include "worker/judged/python_probe.hpp"

namespace syslab::cli {
namespace {

store::StoredCheck find_check(const store::Store& store, const std::string& uid) {
  const std::optional<store::StoredCheck> check = store.find_check(uid);
  if (check) return *check;
  throw Error(ErrorKind::usage,
              fmt::format("no check '{}' in this database; syslab query \"SELECT uid, name, message FROM check_result "
                          "WHERE outcome = 'falsified'\" shows those that failed",
                          uid));
}

bool is_law(const registry::Experiment& experiment, const std::string& name) {
  return std::any_of(experiment.laws.begin(), experiment.laws.end(),
                     [&](const LawInfo& law) { return law.id == name; });
}

// --mine NAME=FOLDER, or a zip, as it was handed in: the adapters.py in it, called as the recorded one was.
struct HandIn {
  std::vector<std::string> mine;
  std::vector<std::unique_ptr<submission::Folder>> unpacked;
};

HandIn hand_in_of(const std::vector<std::string>& given, const std::string& recorded) {
  HandIn found;
  for (const std::string& text : given) {
    const std::size_t equals = text.find('=');
    const std::string path = equals == std::string::npos ? "" : text.substr(equals + 1);
    const std::size_t colon = recorded.rfind(':');
    if (path.empty() || colon == std::string::npos || !submission::is_submission(path)) {
      found.mine.push_back(text);
      continue;
    }
    found.unpacked.push_back(std::make_unique<submission::Folder>(path));
    found.mine.push_back(text.substr(0, equals + 1) + found.unpacked.back()->adapters().string() +
                         recorded.substr(colon));
  }
  return found;
}

plan::Plan plan_of(const Context& context, const store::StoredCheck& check, MineFiles& files) {
  plan::Plan plan;
  plan::PlannedCase planned;
  planned.experiment = &context.registry.find(check.experiment);
  planned.params = check.params;
  planned.implementation = check.implementation;
  const Conditions conditions = conditions_from_json(check.protocol_json);
  planned.device = device_of(*planned.experiment, planned.implementation, conditions.mine_device);
  planned.seed = parse_seed(check.seed);
  planned.world_size = check.world_size;
  planned.case_uid = case_uid(planned.experiment->id, planned.experiment->version, planned.params);
  if (is_law(*planned.experiment, check.law)) {
    planned.task = plan::Task::law;
    planned.law = check.law;
  } else if (check.law.find(':') == std::string::npos) {  // "reference:out" is a comparison of the case itself
    throw Error(ErrorKind::usage, fmt::format("{} has no law '{}' any more", planned.experiment->id, check.law));
  }
  files.require_may_name_files(check.run, planned);
  std::vector<std::string> mine;
  if (!check.mine_path.empty()) mine.push_back(check.implementation);
  files.require_known(mine);
  if (!check.mine_path.empty()) {
    const store::ImplementationRow recorded{
        .name = check.implementation, .digest = check.implementation_digest, .language = {}, .path = check.mine_path};
    plan.mine.push_back(files.find(check.run, recorded, ChangedFile::refused));
    if (plan.mine.back().digest != check.implementation_digest) {
      context.console.note(
          fmt::format("'{}' is not what was checked then; this replays it as it is now", plan.mine.back().path()));
    }
  }
  plan.cases.push_back(std::move(planned));
  return plan;
}

constexpr std::string_view kBelowMessage = "         | ";     // of what may be a submission's own lines
constexpr std::string_view kNotSeenAgain = "not seen again";  // in place of the outcome, which is `passed`

// The record of the same check, or the first that failed, or nothing.
const worker::CheckRecord* record_of(const runner::AttemptResult& result, const std::string& name) {
  const worker::CheckRecord* failed = nullptr;
  for (const worker::Record& record : result.records) {
    const auto* check = std::get_if<worker::CheckRecord>(&record);
    if (check == nullptr) continue;
    if (check->name == name) return check;
    if (failed == nullptr && check->outcome == Outcome::falsified) failed = check;
  }
  return failed;
}

// "seq_q=17 head_dim=3": the values of a counterexample.
std::string counterexample_text(const std::string& json) {
  const Json parsed = json_or_discarded(json);
  std::string text;
  if (!parsed.is_object()) return json;
  for (const auto& [name, value] : parsed.items()) {
    text += (text.empty() ? "" : " ") + name + "=" + (value.is_string() ? value.get<std::string>() : json_text(value));
  }
  return text;
}

// What failed then and holds in the very same file, asked by the same build, may strike now and then: a law's
// counterexample as well as a comparison of a case.
bool unmended(const plan::Plan& plan, const store::StoredCheck& check, const worker::CheckRecord* record) {
  const bool failed = check.outcome == Outcome::falsified || check.outcome == Outcome::error;
  return record != nullptr && record->outcome == Outcome::passed && failed && !plan.mine.empty() &&
         plan.mine.back().digest == check.implementation_digest;
}

void print_text(const Context& context, const store::StoredCheck& check, const plan::PlannedCase& planned,
                const runner::AttemptResult& result, const worker::CheckRecord* record, bool well, bool undecided) {
  const Console& console = context.console;
  std::string text = console.styled(one_line(label_of(planned)), Style::bold) + "\n";
  text += fmt::format("stored   {}{}\n", to_string(check.outcome),
                      check.message.empty() ? "" : ": " + with_margin(check.message, kBelowMessage));
  const std::string_view outcome = undecided           ? kNotSeenAgain
                                   : record != nullptr ? to_string(record->outcome)
                                                       : syslab::to_string(result.status);
  const std::string& message = record != nullptr ? record->message : result.detail;
  text += fmt::format("now      {}{}\n", console.styled(outcome, well ? Style::good : Style::bad),
                      message.empty() ? "" : ": " + with_margin(message, kBelowMessage));
  const std::string example = record != nullptr && !record->counterexample_json.empty() ? record->counterexample_json
                                                                                        : check.counterexample_json;
  if (!example.empty()) text += fmt::format("input    {}\n", one_line(counterexample_text(example)));
  if (record != nullptr && record->worst_error) {
    text += fmt::format("error    {:.3g}{}\n", *record->worst_error,
                        record->tolerance ? fmt::format(", allowed {:.3g}", *record->tolerance) : "");
  }
  console.print(text);
}

}  // namespace

Exit execute(const Context& context, const ReplayOptions& options) {
  require_database(context);
  worker::choose_python_interpreter(options.python);
  const store::Store store = store::Store::open(context.global.database, store::Mode::read_only);
  hide_database(context.global.database);
  std::optional<store::OneState> one_state(std::in_place, store);  // the check is of the run that is proved
  const store::StoredCheck check = find_check(store, options.check);
  const HandIn hand_in = hand_in_of(options.mine, check.mine_path);
  MineFiles files(store, hand_in.mine, fmt::format("syslab replay {}{}", check.uid, db_flag(context.global)));
  const plan::Plan plan = plan_of(context, check, files);
  one_state.reset();
  if (!plan.mine.empty()) warn_of_missing_walls(context.console);
  runner::RunOptions how;
  how.places = context.places;
  how.protocol = "quick";
  how.reproduce = check.reproduce;
  std::optional<runner::AttemptResult> result;
  runner::Observer observer;
  observer.finished = [&](runner::AttemptResult finished) { result = std::move(finished); };
  runner::run_plan(plan, how, observer);
  if (!result) return Exit::incomplete;

  const worker::CheckRecord* record = record_of(*result, check.law);
  worker::CheckRecord held;
  const bool undecided = unmended(plan, check, record);
  if (undecided) {
    held = *record;
    held.message += fmt::format(
        "; '{}' is the file that failed, unchanged: unless something that it loads was mended, the fault "
        "is still in it and strikes now and then",
        plan.mine.back().path());
    record = &held;
  }
  const Exit exit = undecided ? Exit::incomplete : exit_of(result->status, false);
  if (!context.console.json()) {
    print_text(context, check, plan.cases[0], *result, record, exit == Exit::well, undecided);
    return exit;
  }
  Json json{{"check", check.uid},
            {"case", plan::to_json(plan.cases[0])},
            {"name", check.law},
            {"stored", {{"outcome", to_string(check.outcome)}, {"message", check.message}}},
            {"status", syslab::to_string(result->status)},
            {"detail", result->detail}};
  if (record != nullptr) {
    json["now"] = {{"outcome", undecided ? kNotSeenAgain : to_string(record->outcome)}, {"message", record->message}};
    const Json example = json_or_discarded(record->counterexample_json);
    if (!example.is_discarded()) json["now"]["counterexample"] = example;
    if (record->worst_error) json["now"]["worst_error"] = *record->worst_error;
    if (record->tolerance) json["now"]["tolerance"] = *record->tolerance;
  }
  if (!plan.mine.empty()) add_missing_walls(json);
  context.console.print_document(json);
  return exit;
}

}  // namespace syslab::cli
