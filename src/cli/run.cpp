#include <set>

#include "cli/selection.hpp"
#include "cli/session.hpp"
#include "cli/verbs.hpp"
#include "core/error.hpp"
#include "measure/protocol.hpp"

namespace syslab::cli {
namespace {

constexpr int kQuickLawCases = 20;
constexpr int kFullLawCases = 100;

// A run has one protocol: the one that its experiments name where they all name the same, else the general one.
std::string own_protocol(const plan::Plan& plan, bool smoke) {
  if (smoke) return "quick";
  std::set<std::string> named;
  for (const plan::PlannedCase& planned : plan.cases) named.insert(planned.experiment->protocol);
  return named.size() == 1 ? *named.begin() : "kernel";
}

}  // namespace

Exit execute(const Context& context, const RunOptions& options) {
  const plan::Selection selection = to_selection(options.selection);
  plan::Plan plan = plan::make_plan(context.registry, selection);
  if (options.laws != Laws::none) {
    plan = joined(law_plan(context.registry, selection, options.contract), std::move(plan));
  }
  if (plan.cases.empty()) {
    throw Error(ErrorKind::usage,
                "this selects no case: no experiment named has both what --preset and --impl ask for; "
                "`syslab plan` with the same options shows why");
  }
  Conditions conditions;
  const bool smoke = selection.preset == "smoke";
  conditions.protocol = measure::find_protocol(options.protocol.value_or(own_protocol(plan, smoke))).name;
  conditions.data = options.data;
  conditions.law_cases = options.laws == Laws::full ? kFullLawCases : kQuickLawCases;
  conditions.timeout = duration_option("--timeout", options.timeout);
  conditions.memory_limit_bytes = bytes_option("--memory-limit", options.memory_limit);
  // All that can be wrong with the command is known by now; from here on there is a run.
  store::Store store = open_for_writing(context);
  const store::RowId run = begin_run(context, store, "run", options.label, plan, conditions);
  return run_and_store(context, store, run, plan, conditions);
}

}  // namespace syslab::cli
