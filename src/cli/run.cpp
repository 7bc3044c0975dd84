#include <fmt/format.h>

#include "cli/verbs.hpp"
#include "core/error.hpp"
#include "session/selection.hpp"
#include "session/session.hpp"

namespace syslab::cli {
namespace {

constexpr int kQuickLawCases = 20;
constexpr int kFullLawCases = 100;

}  // namespace

Exit execute(const Context& context, const RunOptions& options) {
  const plan::Selection selection = to_selection(context, options.selection);
  plan::Plan plan = plan::make_plan(context.registry, selection);
  if (options.laws != Laws::none) {
    plan::Plan laws = laws_before(context.registry, selection, options.contract, plan);
    plan = joined(std::move(laws), std::move(plan));
  }
  if (plan.cases.empty()) {
    throw Error(ErrorKind::usage,
                "this selects no case: no experiment named has both what --preset and --impl ask for; "
                "`syslab plan` with the same options shows why");
  }
  if (!keep_shard(context.console, options.selection, plan)) return Exit::well;
  check_mine(selection.mine);
  Conditions conditions = to_conditions(options.measuring, plan, selection.preset == "smoke");
  conditions.data = options.data;
  conditions.law_cases = options.laws == Laws::full ? kFullLawCases : kQuickLawCases;
  conditions.timeout = duration_option("--timeout", options.timeout);
  if (!options.budget.empty()) conditions.budget = duration_option("--budget", options.budget);
  if (!options.isolation.empty()) conditions.isolation = runner::parse_isolation(options.isolation);
  if (conditions.launches > 1 && conditions.isolation == runner::Isolation::reuse) {
    throw Error(ErrorKind::usage, fmt::format("{} launches are {} fresh processes, and --isolation reuse wants one for "
                                              "many cases; leave one of them out",
                                              conditions.launches, conditions.launches));
  }
  note_crowded_ranks(context.console, plan);
  // All that can be wrong with the command is known by now; from here on there is a run.
  store::Store store = open_for_writing(context);
  const store::RowId run = begin_run(context, store, "run", options.label, plan, conditions);
  return run_and_store(context, store, run, plan, conditions);
}

}  // namespace syslab::cli
