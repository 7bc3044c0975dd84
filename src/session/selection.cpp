#include "session/selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "core/text/short_name.hpp"
#include "core/text/text.hpp"
#include "plan/shard.hpp"
#include "session/command_selection.hpp"
#include "session/function_selection.hpp"
#include "session/library_problem.hpp"
#include "session/this_machine.hpp"
#include "worker/judged/python_probe.hpp"

namespace syslab::cli {
namespace {

// Larger numbers would overflow in sums with a clock's time or a process's size.
constexpr Nanoseconds kLongest = std::chrono::hours(24 * 36525);
constexpr std::uint64_t kLargest = std::uint64_t{1} << 56;

bool is_mine(const plan::Plan& plan, const plan::PlannedCase& planned) {
  return std::any_of(plan.mine.begin(), plan.mine.end(),
                     [&](const Submitted& mine) { return mine.name == planned.implementation; });
}

void number_cases(plan::Plan& plan) {
  for (std::size_t i = 0; i < plan.cases.size(); ++i) plan.cases[i].index = static_cast<int>(i);
}

// An axis at its only declared value says nothing, so it is left out: a line shows what this case is about.
bool at_default(const registry::Experiment* experiment, const std::string& axis, const Value& value) {
  const Axis* declared = experiment == nullptr ? nullptr : experiment->find_axis(axis);
  return declared != nullptr && declared->values.size() == 1 && declared->values.front() == value;
}

// Of a function a case that was not named has its axes for a name, and which reference it was (`problem`) is the same
// for all that stand together: a title that had them said everything twice.
bool says_nothing_new(const std::string& experiment, const std::string& axis, const Value& value,
                      const Params& params) {
  if (experiment != kFunctionExperiment) return false;
  if (axis == "problem") return true;
  if (axis != "case") return false;
  std::set<std::string> words;
  for (const auto& [name, each] : params) {
    if (name != "case" && name != "problem" && name != "pass") words.insert(name + "=" + syslab::to_string(each));
  }
  std::istringstream text(syslab::to_string(value));
  std::set<std::string> own{std::istream_iterator<std::string>(text), {}};
  return own == words;
}

std::string label(const registry::Experiment* known, const std::string& experiment, const std::string& implementation,
                  const Params& params, std::int64_t world_size) {
  std::string text = experiment;
  if (!implementation.empty()) text += " " + implementation;
  for (const auto& [axis, value] : params) {
    if (!at_default(known, axis, value) && !says_nothing_new(experiment, axis, value, params))
      text += fmt::format(" {}={}", axis, syslab::to_string(value));
  }
  if (world_size > 1) text += fmt::format(" on {} ranks", world_size);
  return text;
}

}  // namespace

plan::Selection to_selection(const Context& context, const SelectionOptions& options, const plan::Sides& sides) {
  plan::Selection selection;
  // Owns nothing: the program's registry lives as long as the program.
  selection.registry = {std::shared_ptr<const registry::Registry>(), &context.registry};
  selection.patterns = options.names;
  if (selection.patterns.empty() && !options.handout.empty()) selection.patterns = {"all"};
  for (const std::string& text : options.assignments) selection.assignments.push_back(plan::parse_assignment(text));
  selection.preset = options.preset;
  selection.implementations = options.implementations;
  selection.devices = options.devices;
  for (const std::string& text : options.mine) selection.mine.push_back(plan::parse_mine(text));
  select_command(options, selection, sides);
  select_function(options, selection);
  require_short_name("--author", options.author);
  selection.author = options.author;
  selection.handout = options.handout;
  selection.root_seed = options.seed;
  selection.file_names = options.file_names;
  selection.machine = machine_of(context, options.devices != std::vector<std::string>{"cpu"});
  return selection;
}

plan::Plan law_plan(const plan::Selection& selection, std::optional<Contract> contract) {
  const registry::Registry& registry = *selection.registry;
  if (contract) return plan::make_law_plan(registry, selection, *contract);
  plan::Plan ours = plan::make_law_plan(registry, selection, Contract::full);
  if (selection.mine.empty()) return ours;
  plan::Plan mine = plan::make_law_plan(registry, selection, Contract::handout);
  // Where no hand-out poses it, the formulas and their bounds are all that is promised.
  const auto posed = [](const plan::PlannedCase& planned) { return !planned.experiment->problems.empty(); };
  std::erase_if(ours.cases, [&](const auto& planned) { return is_mine(ours, planned) && posed(planned); });
  std::erase_if(mine.cases, [&](const auto& planned) { return !is_mine(mine, planned) || !posed(planned); });
  return joined(std::move(ours), std::move(mine));
}

plan::Plan laws_before(const plan::Selection& selection, std::optional<Contract> contract, const plan::Plan& measured) {
  plan::Plan laws = law_plan(selection, contract);
  plan::leave_out_unmeasured(laws, measured);
  // What ranks train is certified on these very ranks before it is timed.
  std::erase_if(laws.cases, [](const plan::PlannedCase& law) { return law.experiment->takes_ranks(); });
  for (std::size_t i = 0; i < laws.cases.size(); ++i) laws.cases[i].index = static_cast<int>(i);
  return laws;
}

bool keep_shard(const Console& console, const SelectionOptions& options, plan::Plan& plan) {
  if (options.shard.empty()) return true;
  const std::size_t whole = plan.cases.size();
  plan::keep_shard(plan, plan::parse_shard(options.shard));
  if (!plan.cases.empty()) return true;
  console.note(fmt::format("--shard {} of {} has none: there is nothing to do here", options.shard,
                           counted(static_cast<std::int64_t>(whole), "case")));
  return false;
}

plan::Plan joined(plan::Plan first, plan::Plan second) {
  first.cases.insert(first.cases.end(), std::make_move_iterator(second.cases.begin()),
                     std::make_move_iterator(second.cases.end()));
  number_cases(first);
  return first;
}

Nanoseconds duration_option(const std::string& name, const std::string& text) {
  const std::optional<Nanoseconds> duration = parse_duration(text);
  if (!duration || duration->count() <= 0) {
    throw Error(ErrorKind::usage, fmt::format("{} '{}' is no duration; write 30s, 500ms or 5m", name, text));
  }
  if (*duration > kLongest) throw Error(ErrorKind::usage, fmt::format("{} '{}' is more than a century", name, text));
  return *duration;
}

double percent_option(const std::string& name, const std::string& text, int below) {
  const bool has_sign = text.ends_with('%');
  const std::string number = has_sign ? trim(text.substr(0, text.size() - 1)) : text;
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc{} || end != number.data() + number.size()) {
    throw Error(ErrorKind::usage, fmt::format("{} '{}' is no percentage; write 2% or 0.5%", name, text));
  }
  if (!(value > 0 && value < below)) {
    throw Error(
        ErrorKind::usage,
        fmt::format("{} {}; expected a percentage above 0 % and below {} %, such as 2% or 0.5%", name, text, below));
  }
  if (!has_sign) {  // 0.02 could be meant either way
    throw Error(ErrorKind::usage, fmt::format("{} {} of what? It is a percentage; write {}%", name, text, text));
  }
  return value / 100;
}

std::uint64_t bytes_option(const std::string& name, const std::string& text) {
  if (text.empty()) return 0;
  const std::optional<std::uint64_t> bytes = parse_bytes(text);
  if (!bytes || *bytes == 0) {
    throw Error(ErrorKind::usage, fmt::format("{} '{}' is no size; write 2Gi (binary) or 2G (decimal)", name, text));
  }
  if (*bytes > kLargest) {
    throw Error(ErrorKind::usage,
                fmt::format("{} '{}' is more than an address space has; for no limit leave it out", name, text));
  }
  return *bytes;
}

void check_mine(const std::vector<Submitted>& mine) {
  for (const Submitted& one : mine) {
    if (one.is_command()) continue;  // looked for when it was read
    const std::string problem = one.is_symbol()   ? symbol_problem(one.path(), one.inside())
                                : one.is_python() ? worker::python_problem(one.path(), one.inside(), one.is_function())
                                                  : library_problem(one.path());
    if (!problem.empty()) {
      throw Error(ErrorKind::usage, fmt::format("--mine {}={}: {}", one.name, path_of(one), problem));
    }
  }
}

void note_crowded_ranks(const Console& console, const plan::Plan& plan) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  int most = 0;
  for (const plan::PlannedCase& planned : plan.cases) {
    if (!planned.skip_reason && planned.device == DeviceKind::cpu) most = std::max(most, planned.world_size);
  }
  if (most <= cores) return;
  console.note(fmt::format("up to {} ranks on {}: ranks take turns there, and their times say so", most,
                           counted(cores, "processor")));
}

std::string path_of(const Submitted& mine) {
  if (mine.is_function()) {
    return fmt::format("{}:{} against {} on {}", mine.path(), mine.inside(), mine.comparison()->reference,
                       mine.comparison()->inputs);
  }
  return mine.inside().empty() ? mine.path() : mine.path() + ":" + mine.inside();
}

std::string case_words(const std::string& experiment, const std::string& params_json, const std::string& case_text) {
  const Json stored = json_or_discarded(params_json);
  if (experiment != kFunctionExperiment || !stored.is_object()) return case_text;
  const Params params = Params::from_json(stored);
  std::string text;
  for (const auto& [axis, value] : params) {
    if (says_nothing_new(experiment, axis, value, params)) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", axis, syslab::to_string(value));
  }
  return text.empty() ? case_text : text;
}

std::string case_label(const registry::Registry& registry, const std::string& experiment,
                       const std::string& implementation, const Params& params, std::int64_t world_size) {
  const auto known = std::ranges::find(registry.experiments(), experiment, &registry::Experiment::id);
  return label(known == registry.experiments().end() ? nullptr : &*known, experiment, implementation, params,
               world_size);
}

std::string label_of(const plan::PlannedCase& planned) {
  const std::string& experiment = planned.experiment->id;
  if (planned.task != plan::Task::law) {
    return label(planned.experiment, experiment, planned.implementation, planned.params, planned.world_size);
  }
  return label(nullptr, experiment, planned.implementation, {}, 1) + " " + law_label(planned);
}

std::string law_label(const plan::PlannedCase& planned) {
  if (planned.task != plan::Task::law) return {};
  const auto contract = plan::contract_of(planned);
  return contract ? fmt::format("{} ({})", planned.law, to_string(*contract)) : planned.law;
}

}  // namespace syslab::cli
