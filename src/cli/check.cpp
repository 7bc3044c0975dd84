#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "check/handout_laws.hpp"
#include "cli/check_verdict.hpp"
#include "cli/verbs.hpp"
#include "core/error.hpp"
#include "core/ids.hpp"
#include "core/text.hpp"
#include "plan/assignment.hpp"
#include "session/selection.hpp"
#include "session/session.hpp"

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

// Takes what is declared out of the selection, whose axes are implementations, devices and ranks.
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

bool is_attention(const plan::PlannedCase& planned) { return planned.law.starts_with("attention."); }

// Under no contract of its own, somebody's implementation meets both: the hand-out, which decides, and what lies
// beyond it.
plan::Plan check_plan(const Context& context, const plan::Selection& selection, const CheckOptions& options,
                      const Params& declared) {
  plan::Plan plan = law_plan(context.registry, selection, options.contract);
  if (selection.mine.empty()) return plan;
  const auto keep_mine = [](plan::Plan& part) {
    std::erase_if(part.cases, [&](const plan::PlannedCase& planned) { return !is_mine(part, planned); });
  };
  if (options.contract != "handout") {
    plan::Plan other = plan::make_law_plan(context.registry, selection, options.contract ? "handout" : "full");
    keep_mine(other);
    if (!options.contract) {
      std::erase_if(other.cases, [](const plan::PlannedCase& planned) { return !is_attention(planned); });
    }
    // The hand-out first: its verdict is waited for.
    plan = options.contract ? joined(std::move(other), std::move(plan)) : joined(std::move(plan), std::move(other));
  }
  std::erase_if(plan.cases, [&](const plan::PlannedCase& planned) {
    return is_mine(plan, planned) && is_attention(planned) && !check::is_of_handout(planned.law) &&
           to_string(planned.params.at("contract")) == "handout";
  });
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    plan::PlannedCase& planned = plan.cases[i];
    planned.index = static_cast<int>(i);
    if (!is_mine(plan, planned) || to_string(planned.params.at("contract")) == "handout") continue;
    for (const auto& [name, value] : declared) planned.params.set(name, value);
    if (!options.contract) planned.params.set("domain", std::string("usual"));
    planned.case_uid = case_uid(planned.experiment->id, planned.experiment->version, planned.params);
  }
  return plan;
}

}  // namespace

Exit execute(const Context& context, const CheckOptions& options) {
  plan::Selection selection = to_selection(context, options.selection);
  const Params declared = take_declared(selection);
  plan::Plan plan = check_plan(context, selection, options, declared);
  if (plan.cases.empty()) {
    throw Error(ErrorKind::usage, "the selected experiments have no laws; `syslab run` checks their outputs");
  }
  if (!keep_shard(context.console, options.selection, plan)) return Exit::well;
  check_mine(selection.mine);
  Conditions conditions;
  conditions.protocol = "quick";  // laws are not timed
  conditions.law_cases = options.cases;
  conditions.mine_device = mine_device(plan);
  // One process answers law after law: importing a framework for each takes longer than the search.
  if (!selection.mine.empty()) conditions.isolation = runner::Isolation::reuse;
  conditions.timeout = duration_option("--timeout", options.timeout);
  conditions.memory_limit_bytes = bytes_option("--memory-limit", options.memory_limit);
  store::Store store = open_for_writing(context);
  const store::RowId run = begin_run(context, store, "check", options.label, plan, conditions);
  const Exit ended = run_and_store(context, store, run, plan, conditions);
  if (selection.mine.empty()) return ended;
  const std::string year = selection.handout.empty() ? "2026" : selection.handout;
  return print_verdict(context, store, run, plan, {year, options.contract == "full"}, ended);
}

}  // namespace syslab::cli
