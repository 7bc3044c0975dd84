#include "cli/verbs.hpp"
#include "core/error.hpp"
#include "session/selection.hpp"
#include "session/session.hpp"

namespace syslab::cli {

Exit execute(const Context& context, const CheckOptions& options) {
  const plan::Selection selection = to_selection(context, options.selection);
  plan::Plan plan = law_plan(context.registry, selection, options.contract);
  if (plan.cases.empty()) {
    throw Error(ErrorKind::usage, "the selected experiments have no laws; `syslab run` checks their outputs");
  }
  if (!keep_shard(context.console, options.selection, plan)) return Exit::well;
  check_mine(selection.mine);
  Conditions conditions;
  conditions.protocol = "quick";  // laws are not timed
  conditions.law_cases = options.cases;
  conditions.mine_device = mine_device(plan);
  conditions.timeout = duration_option("--timeout", options.timeout);
  conditions.memory_limit_bytes = bytes_option("--memory-limit", options.memory_limit);
  store::Store store = open_for_writing(context);
  const store::RowId run = begin_run(context, store, "check", options.label, plan, conditions);
  return run_and_store(context, store, run, plan, conditions);
}

}  // namespace syslab::cli
