#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

#include "cli/check_submission.hpp"
#include "cli/check_verdict.hpp"
#include "cli/emitted_test.hpp"
#include "cli/error_map.hpp"
#include "cli/folder_of_mine.hpp"
#include "cli/last_failed.hpp"
#include "cli/output_file.hpp"
#include "cli/verbs/verbs.hpp"
#include "cli/verbs/watch.hpp"
#include "core/error.hpp"
#include "core/ids.hpp"
#include "core/text/text.hpp"
#include "plan/assignment.hpp"
#include "session/selection.hpp"
#include "session/session.hpp"
#include "store/cells.hpp"
#include "submission/settings.hpp"
#include "verdict/check_depth.hpp"
#include "worker/judged/python_probe.hpp"

namespace syslab::cli {
namespace {

// What `-a` may declare of --mine; the words are those of ops/attention/domain.hpp.
struct Declarable {
  std::string_view name;
  std::string_view values;
  bool (*takes)(const std::string&);
};
bool is_flag(const std::string& text) { return text == "true" || text == "false"; }
bool is_dtype(const std::string& text) { return text == "fp32" || text == "fp16" || text == "bf16"; }
bool is_size(const std::string& text) {
  const auto size = plan::parse_integer(text);
  return size && *size >= 1 && *size <= std::int64_t{1} << 20;
}
bool is_head_dim(const std::string& text) { return is_size(text) && *plan::parse_integer(text) <= 256; }
constexpr std::array<Declarable, 7> kDeclarable{{{"dtype", "fp32, fp16 and bf16", is_dtype},
                                                 {"head_dim", "whole numbers from 1 to 256", is_head_dim},
                                                 {"causal", "true and false", is_flag},
                                                 {"multiple_of", "a whole number from 1 on", is_size},
                                                 {"max_seq", "a whole number from 1 on", is_size},
                                                 {"square", "true and false", is_flag},
                                                 {"deterministic", "true and false", is_flag}}};

const Declarable* find_declarable(std::string_view name) {
  const auto found =
      std::find_if(kDeclarable.begin(), kDeclarable.end(), [name](const Declarable& one) { return one.name == name; });
  return found == kDeclarable.end() ? nullptr : &*found;
}

// Removes declared values from the selection, which keeps implementations, devices and ranks.
Params take_declared(plan::Selection& selection) {
  Params declared;
  std::vector<plan::AxisAssignment> axes;
  for (const plan::AxisAssignment& assignment : selection.assignments) {
    const Declarable* const known = find_declarable(assignment.name);
    if (known == nullptr && (assignment.name == "impl" || assignment.name == "device")) {
      axes.push_back(assignment);
      continue;
    }
    if (known == nullptr) {
      std::vector<std::string> names{"impl", "device"};
      for (const Declarable& one : kDeclarable) names.emplace_back(one.name);
      throw Error(ErrorKind::usage, unknown_name("axis of check", assignment.name, names));
    }
    std::string text;
    for (const std::string& value : assignment.values) {
      if (!known->takes(value)) {
        throw Error(ErrorKind::usage, fmt::format("-a {} takes {}, not '{}'", known->name, known->values, value));
      }
      text += (text.empty() ? "" : ",") + value;
    }
    declared.set(assignment.name, text);
  }
  selection.assignments = std::move(axes);
  if (declared.size() > 0 && selection.mine.empty()) {
    throw Error(ErrorKind::usage, "-a declares what --mine promises, and there is no --mine; ours say it themselves");
  }
  return declared;
}

// An implementation without a contract of its own is checked under both: the hand-out's, which decides, and what goes
// beyond it.
plan::Plan check_plan(const plan::Selection& selection, const CheckOptions& options, const Params& declared) {
  plan::Plan plan = law_plan(selection, options.contract);
  if (selection.mine.empty()) return plan;
  const auto keep_mine = [](plan::Plan& part) {
    std::erase_if(part.cases, [&](const plan::PlannedCase& planned) { return !is_mine(part, planned); });
  };
  if (options.contract != Contract::handout) {
    plan::Plan other =
        plan::make_law_plan(*selection.registry, selection, options.contract ? Contract::handout : Contract::full);
    keep_mine(other);
    if (!options.contract) {
      std::erase_if(other.cases,
                    [](const plan::PlannedCase& planned) { return !planned.experiment->has_laws_of_handout(); });
    }
    // The hand-out first: users wait for its verdict.
    plan = options.contract ? joined(std::move(other), std::move(plan)) : joined(std::move(plan), std::move(other));
  }
  std::erase_if(plan.cases, [&](const plan::PlannedCase& planned) {
    return !options.beyond.empty() && is_mine(plan, planned) && plan::contract_of(planned) == Contract::full &&
           std::ranges::none_of(options.beyond, [&](const std::string& glob) { return glob_match(glob, planned.law); });
  });
  std::erase_if(plan.cases, [&](const plan::PlannedCase& planned) {
    return is_mine(plan, planned) && planned.experiment->has_laws_of_handout() &&
           !planned.experiment->find_law(planned.law)->asked_by_handout &&
           plan::contract_of(planned) == Contract::handout;
  });
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    plan::PlannedCase& planned = plan.cases[i];
    planned.index = static_cast<int>(i);
    if (!is_mine(plan, planned) || plan::contract_of(planned) == Contract::handout) continue;
    for (const auto& [name, value] : declared) planned.params.set(name, value);
    if (!options.contract) planned.params.set("domain", std::string("usual"));
    planned.case_uid = case_uid(planned.experiment->id, planned.experiment->version, planned.params);
  }
  return plan;
}

// Laws that -k chooses; Error(usage) with all names if it chooses none.
void keep_named(plan::Plan& plan, const std::string& keyword) {
  if (keyword.empty()) return;
  std::vector<std::string> names;
  for (const plan::PlannedCase& planned : plan.cases) {
    if (std::find(names.begin(), names.end(), planned.law) == names.end()) names.push_back(planned.law);
  }
  std::erase_if(plan.cases, [&](const plan::PlannedCase& one) { return one.law.find(keyword) == std::string::npos; });
  if (plan.cases.empty()) {
    throw NoLawNamed(fmt::format("-k {}: no law's name holds it; there are {}", keyword, fmt::join(names, ", ")));
  }
  for (std::size_t i = 0; i < plan.cases.size(); ++i) plan.cases[i].index = static_cast<int>(i);
}

std::string chosen_by(const CheckOptions& options, bool only_failed) {
  std::string text = options.keyword.empty() ? "" : "-k " + options.keyword;
  if (only_failed) text += text.empty() ? "--last-failed" : " and --last-failed";
  return text;
}

// Before anything is searched for it: a file of `ending`, in which `what` is written.
void require_file(const Context& context, const plan::Selection& selection, const char* option, const std::string& file,
                  const char* ending, const char* what) {
  if (file.empty()) return;
  if (!file.ends_with(ending)) {
    throw Error(ErrorKind::usage, fmt::format("{} '{}': {}; end its name in {}", option, file, what, ending));
  }
  if (selection.mine.empty()) {
    throw Error(ErrorKind::usage, fmt::format("{} is about what --mine gets wrong, and there is no --mine", option));
  }
  require_writable(context, file);
}

void require_files(const Context& context, const plan::Selection& selection, const CheckOptions& options) {
  require_file(context, selection, "--map", options.map, ".svg", "the map is an SVG");
  require_file(context, selection, "--emit", options.emit, ".py", "what is emitted is a PyTorch test");
  const auto library = std::ranges::find_if(selection.mine, [](const auto& mine) { return !mine.is_python(); });
  if (!options.emit.empty() && library != selection.mine.end()) {
    throw Error(ErrorKind::usage, fmt::format("--emit writes a PyTorch test, and {} is a library: `syslab replay` runs "
                                              "its counterexamples",
                                              library->name));
  }
}

// The map of the first counterexample that has one, of a case of the plan.
struct Mapped {
  const plan::PlannedCase* of = nullptr;
  std::string artifact;
};
std::optional<Mapped> find_map(const store::Store& store, store::RowId run, const plan::Plan& plan) {
  const store::ResultSet found = store.query(
      "SELECT t.plan_seq, CAST(f.content AS TEXT) FROM attempt t JOIN artifact f ON f.attempt_id = t.id"
      " WHERE t.run_id = ?1 AND f.kind = 'error_map' ORDER BY t.id LIMIT 1",
      {store::integer_cell(run)});
  if (found.rows.empty()) return std::nullopt;
  const auto of = std::ranges::find(plan.cases, found.rows[0][0].integer, &plan::PlannedCase::index);
  return Mapped{of == plan.cases.end() ? nullptr : &*of, found.rows[0][1].text};
}

// To the file, and as text where somebody looks on.
void show_map(const Context& context, const std::optional<Mapped>& mapped, const std::string& file) {
  const bool as_text = context.console.output_is_terminal() && !context.console.json() && !context.console.quiet();
  if (file.empty() && !as_text) return;
  if (!mapped) {
    if (!file.empty()) context.console.note(fmt::format("no counterexample has a map; {} was not written", file));
    return;
  }
  const std::string name =
      mapped->of == nullptr ? "" : fmt::format("{} {}", mapped->of->implementation, law_label(*mapped->of));
  const ErrorMap map = parse_error_map(mapped->artifact);
  if (as_text) context.console.print(fmt::format("where {} is wrong:\n{}", name, text_of(map)));
  if (file.empty()) return;
  write_output(context, file, svg_of(map, name));
  context.console.note("wrote " + file);
}

void emit_test(const Context& context, const std::optional<Mapped>& mapped, const plan::Plan& plan,
               const std::string& file) {
  if (file.empty()) return;
  std::optional<std::string> text;
  if (mapped && mapped->of != nullptr) {
    const auto mine = std::ranges::find(plan.mine, mapped->of->implementation, &Submitted::name);
    if (mine != plan.mine.end()) text = emitted_test(mapped->artifact, *mine, mapped->of->law);
  }
  if (text) write_output(context, file, *text);
  context.console.note(text ? "wrote " + file
                            : "no counterexample is an input that a PyTorch test can show; " + file +
                                  " was not written (`syslab replay` runs it)");
}

// `check` in a folder that `init` has prepared, without names or of experiments that a hand-in answers, each by its id:
// of what is in it, unless --mine or --impl says of what.
CheckOptions with_settings(const Context& context, CheckOptions options) {
  SelectionOptions& selection = options.selection;
  if (!selection.mine.empty() || !selection.implementations.empty() || !selection.handout.empty()) return options;
  const std::optional<submission::Settings> settings = submission::read_settings(std::filesystem::current_path());
  if (!settings || !adapters_answer_all(selection.names, settings->handout)) return options;
  selection.handout = settings->handout;
  selection.mine = {settings->mine};
  const bool chooses = selection.python.empty() && !settings->python.empty();
  if (chooses) selection.python = python_of_folder(context.console, std::filesystem::current_path(), settings->python);
  const bool chosen = chooses && !selection.python.empty();
  context.console.note(fmt::format("{}: --handout {} --mine {}{}", submission::kSettingsFile, settings->handout,
                                   settings->mine, chosen ? " --python " + selection.python : ""));
  return options;
}

// A function or command has no laws: its check is that of its cases' outputs, and the shortest protocol's samples.
Exit check_function(const Context& context, const CheckOptions& options) {
  for (const auto& [given, option] : {std::pair{!options.keyword.empty(), "-k"},
                                      {options.watch, "--watch"},
                                      {options.last_failed, "--last-failed"},
                                      {!options.map.empty(), "--map"},
                                      {!options.until.empty(), "--until"}}) {
    if (given)
      throw Error(ErrorKind::usage,
                  fmt::format("{} is about laws, and neither a function nor a command has any", option));
  }
  RunOptions run;
  run.selection = options.selection;
  run.laws = Laws::none;
  run.measuring.protocol = "quick";
  run.measuring.memory_limit = options.memory_limit;
  run.timeout = options.timeout;
  run.label = options.label;
  run.must_answer = true;
  return execute(context, run);
}

}  // namespace

CheckedOnce check_once(const Context& context, const CheckOptions& options, bool of_folder) {
  worker::choose_python_interpreter(options.selection.python);
  plan::Selection selection = to_selection(context, options.selection);
  require_files(context, selection, options);
  const Params declared = take_declared(selection);
  plan::Plan plan = check_plan(selection, options, declared);
  if (plan.cases.empty()) {
    throw Error(ErrorKind::usage, "the selected experiments have no laws; `syslab run` checks their outputs");
  }
  keep_named(plan, options.keyword);
  if (!keep_shard(context.console, options.selection, plan)) return {};
  if (!selection.mine.empty() && !of_folder) tell_missing_walls(context.console);
  check_mine(selection.mine);
  Conditions conditions;
  conditions.protocol = "quick";  // laws are not timed
  const verdict::CheckDepth depth = options.as_graded ? verdict::kGradedDepth
                                    : options.deep    ? verdict::kDeepDepth
                                                      : verdict::kUsualDepth;
  const bool of_ranks = std::ranges::any_of(plan.cases, is_of_ranks);
  conditions.law_cases =
      options.cases.value_or(options.as_graded && of_ranks ? verdict::kGradedTriesOfRanks : depth.cases);
  if (!selection.mine.empty() && !options.cases && options.until.empty() && !of_ranks) conditions.within = depth.within;
  conditions.mine_device = mine_device(plan);
  // One process answers law after law: importing a framework for each takes longer than the search.
  if (!selection.mine.empty()) conditions.isolation = runner::Isolation::reuse;
  conditions.timeout = duration_option("--timeout", options.timeout);
  conditions.jobs = options.jobs;
  conditions.stop_at_failure = options.exit_first || !options.until.empty();
  if (!options.until.empty()) {
    conditions.until = duration_option("--until", options.until);
    conditions.timeout += conditions.until;  // a single law may have it all
  }
  conditions.memory_limit_bytes = bytes_option("--memory-limit", options.memory_limit);
  store::Store store = open_for_writing(context);
  const bool only_failed = options.last_failed && keep_last_failed(context.console, store, plan);
  const store::RowId run = begin_run(context, store, "check", options.label, plan, conditions);
  const Exit ended = run_and_store(context, store, run, plan, conditions, of_folder);
  if (selection.mine.empty()) return {ended, run, {}};
  const std::optional<Mapped> mapped = find_map(store, run, plan);
  show_map(context, mapped, options.map);
  emit_test(context, mapped, plan, options.emit);
  const std::string year = selection.handout.empty() ? "2026" : selection.handout;
  const Exit verdict = print_verdict(context, store, run, plan,
                                     {.year = year,
                                      .beyond_decides = options.contract == Contract::full,
                                      .strict = options.strict,
                                      .cases = conditions.law_cases,
                                      .within = conditions.within,
                                      .may_end_early = conditions.stop_at_failure,
                                      .until = options.until,
                                      .chosen_by = chosen_by(options, only_failed)},
                                     ended);
  return {verdict, run, std::move(plan)};
}

Exit execute(const Context& context, const CheckOptions& asked) {
  if (!asked.selection.reference.empty() || !asked.selection.inputs.empty() || !asked.selection.commands.empty()) {
    return check_function(context, asked);
  }
  CheckOptions options = with_settings(context, asked);
  if (options.imports_alone && !names_submission(options)) {
    throw Error(ErrorKind::usage, "--imports-alone looks at a folder or zip that is handed in: --mine FOLDER");
  }
  const auto check = [&] {
    return names_submission(options) ? check_submission(context, options)
                                     : check_once(context, options, /*of_folder=*/false).exit;
  };
  if (!options.watch) return check();
  if (options.selection.mine.empty()) {
    throw Error(ErrorKind::usage, "--watch waits for changes of --mine, and there is no --mine");
  }
  return watch(context, options.selection.mine, [&](bool only_failed) {
    options.last_failed = asked.last_failed || only_failed;
    return check();
  });
}

}  // namespace syslab::cli
