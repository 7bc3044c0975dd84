#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/check_verdict.hpp"
#include "cli/folder_of_mine.hpp"
#include "cli/handout.hpp"
#include "cli/verbs/verbs.hpp"
#include "core/error.hpp"
#include "judge/walls.hpp"
#include "plan/breadth_first.hpp"
#include "session/forecast.hpp"
#include "session/selection.hpp"
#include "session/session.hpp"
#include "stats/timing_warning.hpp"
#include "store/cells.hpp"
#include "worker/judged/python_probe.hpp"

namespace syslab::cli {

namespace {

std::vector<std::string> missing_walls() {
  if (!judge::walls_wanted()) return {"all (SYSLAB_WALLS=none)"};
  return judge::missing_walls(/*shared_memory=*/true, /*loopback=*/true);
}

}  // namespace

std::string missing_walls_in_words() { return fmt::format("{}", fmt::join(missing_walls(), "; ")); }

void warn_of_missing_walls(const Console& console) {
  if (judge::under_compute_sanitizer()) console.note("under compute-sanitizer no time means anything");
  if (!judge::walls_wanted()) return console.warn("SYSLAB_WALLS=none: what --mine names may do whatever you may");
  judge::hide_this_process();
  const std::string missing = missing_walls_in_words();
  if (missing.empty()) return;
  console.warn(fmt::format("--mine runs without walls that this kernel lacks: {} (SECURITY.md)", missing));
}

void tell_missing_walls(const Console& console) {
  warn_of_missing_walls(console);
  const std::vector<std::string> missing = missing_walls();
  if (console.json() && !missing.empty()) console.print_line({{"type", "walls"}, {"missing", missing}});
}

void add_missing_walls(Json& document) {
  if (const std::vector<std::string> missing = missing_walls(); !missing.empty()) document["walls_missing"] = missing;
}

namespace {

// Exit::incomplete if nothing that --mine names was tried in any of its cases, and says of what.
Exit exit_of_unanswered(const Context& context, const store::Store& store, store::RowId run, const plan::Plan& plan) {
  const store::ResultSet found = store.query(
      "SELECT implementation, count(*), sum(ending <> 'not_asked' OR EXISTS"
      "       (SELECT 1 FROM json_each(facts, '$.warnings') w WHERE w.value ->> '$.code' = ?2))"
      "  FROM v_attempt WHERE run_id = ?1 GROUP BY 1",
      {store::integer_cell(run),
       store::text_cell(std::string(stats::to_string(stats::WarningCode::elements_unjudged)))});
  Exit exit = Exit::well;
  for (const Submitted& mine : plan.mine) {
    const auto cases = std::ranges::count(plan.cases, mine.name, &plan::PlannedCase::implementation);
    const auto row = std::ranges::find_if(found.rows, [&](const auto& one) { return one[0].text == mine.name; });
    if (row == found.rows.end()) continue;  // interrupted before its first case
    const std::string said = nothing_checked(mine.name, cases, (*row)[1].integer, (*row)[2].integer);
    if (said.empty()) continue;
    exit = Exit::incomplete;
    context.console.note(said);
  }
  return exit;
}

}  // namespace

Exit execute(const Context& context, const RunOptions& options) {
  if (is_whole_handout(options.selection)) return run_handout(context, options);
  const SelectionOptions words = with_adapters(context, options.selection);
  if (const std::optional<std::string> begun = begun_before_requeue(context)) {
    context.console.note(
        fmt::format("started again by the scheduler: goes on with run {}, as `syslab resume` does", *begun));
    return execute(context,
                   ResumeOptions{.run = *begun, .budget = options.budget, .mine = words.mine, .python = words.python});
  }
  worker::choose_python_interpreter(words.python);
  const plan::Selection selection = to_selection(context, words);
  plan::Plan plan = plan::make_plan(*selection.registry, selection);
  if (options.laws != Laws::none) {
    plan::Plan laws = laws_before(selection, options.contract, plan);
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
  conditions.law_cases = law_cases(options.laws);
  conditions.asks_for_times = !options.must_answer;  // of `check`
  conditions.timeout = duration_option("--timeout", options.timeout);
  if (!options.budget.empty()) conditions.budget = duration_option("--budget", options.budget);
  if (!options.isolation.empty()) conditions.isolation = runner::parse_isolation(options.isolation);
  if (conditions.launches > 1 && conditions.isolation == runner::Isolation::reuse) {
    throw Error(ErrorKind::usage, fmt::format("{} launches are {} fresh processes, and --isolation reuse wants one for "
                                              "many cases; leave one of them out",
                                              conditions.launches, conditions.launches));
  }
  note_crowded_ranks(context.console, plan);
  if (!selection.mine.empty()) tell_missing_walls(context.console);
  // Everything that can be wrong with the command has been checked; from here on there is a run.
  store::Store store = open_for_writing(context);
  if (conditions.budget.count() > 0) {
    forecast(plan, &store, conditions);
    plan::breadth_first(plan);
  }
  const store::RowId run = begin_run(context, store, "run", options.label, plan, conditions);
  const Exit ended = run_and_store(context, store, run, plan, conditions);
  return options.must_answer ? worse(ended, exit_of_unanswered(context, store, run, plan)) : ended;
}

}  // namespace syslab::cli
