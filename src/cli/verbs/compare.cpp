#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "cli/folder_of_mine.hpp"
#include "cli/verbs/verbs.hpp"
#include "compare/sweep.hpp"
#include "core/build_info.hpp"
#include "core/error.hpp"
#include "core/files/machine_code.hpp"
#include "measure/protocol.hpp"
#include "session/command_selection.hpp"
#include "session/selection.hpp"
#include "session/session.hpp"
#include "words/comparison_words.hpp"
#include "worker/judged/python_probe.hpp"

namespace syslab::cli {
namespace {

constexpr int kPilotLaunches = 3;
constexpr const char* kBudget = "2m";              // who waits longer says so
constexpr const char* kBudgetOfFunctions = "50s";  // with what goes on at its end a minute to a first verdict

std::vector<std::string> experiments_of(const plan::ComparisonPlan& plan) {
  std::set<std::string> ids;
  for (const plan::ComparisonPoint& point : plan.points) ids.insert(point.a.experiment->id);
  return {ids.begin(), ids.end()};
}

// `beside`: of the other side. What this program is made of is only asked where there is another.
SideBuild build_of(const Console& console, const plan::SideSpec& side, const plan::SideSpec& beside,
                   const plan::ComparisonPlan& plan) {
  if (!side.build.empty()) return ask_build(program_of(console, side.build), experiments_of(plan));
  SideBuild build = this_build();
  if (!beside.build.empty()) build.code = machine_code_digest("/proc/self/exe", build_info().git_sha);
  return build;
}

// A change of δ lies on the border between none and some, where no number of launches decides.
void refuse_undecidable(double effect, std::optional<double> asked_delta) {
  const double percent = 100 * effect;
  if (!asked_delta && effect <= 0.01) {
    throw Error(ErrorKind::usage,
                fmt::format("--detect {0:g}% is no more than δ = 1 %, up to which a change counts as none; add "
                            "--delta {1:g}% to ask whether a change of {0:g} % is seen",
                            percent, percent / 2));
  }
  if (!asked_delta || effect > *asked_delta) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("beside --delta {1:g}% a change of {0:g} % counts as none, and --detect {0:g}% asks for it in "
                  "vain; give one: --delta {1:g}% measures and judges whether the change is more than {1:g} %, "
                  "--detect {0:g}% tells how long it takes to see one of {0:g} %",
                  percent, 100 * *asked_delta));
}

// The default for short calls is only known once they were timed.
void refuse_short_calls(double effect, const verdict::Judgement& pilot, std::optional<double> asked_delta) {
  if (asked_delta || effect > pilot.delta) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("--detect {0:g}% is no more than δ = {1:g} %, up to which a change of calls as short as these "
                  "({2}) counts as none; add --delta {3:g}% to ask whether a change of {0:g} % is seen",
                  100 * effect, 100 * pilot.delta, text_of(pilot.quantity, *pilot.seconds_a), 50 * effect));
}

// Runs pilots of every point; prints for each what a decision at `effect` takes. Points that cannot be measured are
// listed with the reason. `goes_on`: launches follow, which may give a time to those that have none yet.
std::vector<MeasuredPoint> pilots(const Context& context, ComparisonSession& session, const plan::ComparisonPlan& plan,
                                  double effect, std::optional<double> asked_delta, bool goes_on,
                                  stats::PairedPlan& largest) {
  std::vector<MeasuredPoint> all;
  for (std::size_t i = 0; i < plan.points.size() && !session.interrupted(); ++i) {
    MeasuredPoint pilot;
    pilot.point = &plan.points[i];
    pilot.failed = session.obstacle(plan.points[i]);
    session.launch(pilot, kPilotLaunches, kPilotLaunches);
    MeasuredPoint told = pilot;
    refuse_unresolved(told);
    if (told.failed) {
      context.console.note(fmt::format("{}: {}", session.title(plan.points[i]), words::reason(*told.failed)));
      all.push_back(std::move(goes_on ? pilot : told));
      continue;
    }
    const verdict::Judgement judged = verdict::judge(turns_of(pilot.blocks), asked_delta, quantity_of(pilot.point->a));
    refuse_short_calls(effect, judged, asked_delta);
    const double delta = judged.delta;
    const Detection found = detection(pilot, effect, delta);
    if (found.plan.launches >= largest.launches) largest = found.plan;
    if (context.console.json()) {
      context.console.print_line({{"type", "detection"},
                                  {"experiment", plan.points[i].a.experiment->id},
                                  {"params", plan.points[i].shared.to_json()},
                                  {"effect", effect},
                                  {"delta", delta},
                                  {"launches", found.plan.launches},
                                  {"blocks_per_launch", found.plan.blocks_per_launch},
                                  {"seconds", found.plan.seconds},
                                  {"half_width", found.plan.half_width},
                                  {"reached", found.plan.reached}});
    } else {
      context.console.print(fmt::format("{}: {}\n", session.title(plan.points[i]), found.text));
    }
    all.push_back(std::move(pilot));
  }
  return all;
}

// With pilots only: a point that could not be measured is not a success.
Exit exit_of_pilots(const std::vector<MeasuredPoint>& pilots, std::size_t planned) {
  Exit exit = pilots.size() < planned ? Exit::incomplete : Exit::well;
  for (const MeasuredPoint& pilot : pilots) {
    if (pilot.failed) {
      verdict::Judgement failed = *pilot.failed;
      failed.warnings = pilot.warnings;
      exit = worse(exit, exit_of(failed, pilot.point->a.experiment->oom_is_an_answer));
    }
    if (pilot.stop == "interrupted") exit = worse(exit, Exit::incomplete);
  }
  return exit;
}

}  // namespace

Exit execute(const Context& context, const CompareOptions& options) {
  const auto began = std::chrono::steady_clock::now();
  SelectionOptions words = options.selection;
  plan::Sides sides = plan::take_sides(words.names);
  words = with_adapters(context, std::move(words));
  worker::choose_python_interpreter(words.python);
  const plan::Selection selection = to_selection(context, words, sides);
  const plan::ComparisonPlan plan =
      plan::make_comparison_plan(*selection.registry, selection, std::move(sides), options.same_on_purpose);
  check_mine(plan.mine);
  if (!plan.mine.empty()) tell_missing_walls(context.console);

  ComparisonConditions conditions;
  std::vector<plan::PlannedCase> cases;
  for (const plan::ComparisonPoint& point : plan.points) cases.push_back(point.a);
  const std::string own = own_protocol(cases, selection.preset == "smoke");
  conditions.protocol = measure::find_protocol(options.protocol.value_or(own)).name;
  conditions.data = options.data;
  conditions.launches = options.launches;
  if (options.delta) conditions.delta = percent_option("--delta", *options.delta);
  if (options.budget || !(options.launches || options.detect)) {
    const bool functions = std::ranges::any_of(plan.mine, &Submitted::is_function);
    conditions.budget = duration_option("--budget", options.budget.value_or(functions ? kBudgetOfFunctions : kBudget));
    conditions.keeps_budget = options.budget.has_value();
  }
  const auto chosen = std::chrono::steady_clock::now();
  conditions.timeout = duration_option("--timeout", options.timeout);
  conditions.memory_limit_bytes = bytes_option("--memory-limit", options.memory_limit);
  std::optional<double> effect;
  if (options.detect) {
    effect = percent_option("--detect", *options.detect);
    refuse_undecidable(*effect, conditions.delta);
  }
  conditions.same_on_purpose = options.same_on_purpose;
  SideBuild a = build_of(context.console, plan.sides.a, plan.sides.b, plan),
            b = build_of(context.console, plan.sides.b, plan.sides.a, plan);
  conditions.began = began + (std::chrono::steady_clock::now() - chosen);  // a build is in nobody's budget

  // Everything that can be wrong with the command has been checked; from here on there is a run.
  store::Store store = open_for_writing(context);
  ComparisonSession session(context, store, "compare", options.label, plan, conditions, std::move(a), std::move(b));
  if (context.console.json()) {
    context.console.print_line({{"type", "run"}, {"run", session.run_uid()}, {"comparisons", plan.points.size()}});
  }
  std::vector<MeasuredPoint> already;
  if (effect) {
    stats::PairedPlan largest;
    const bool goes_on = options.launches || options.budget;
    already = pilots(context, session, plan, *effect, conditions.delta, goes_on, largest);
    if (!goes_on) return exit_of_pilots(already, plan.points.size());
    if (!options.launches && largest.launches > 0) session.set_launches(largest.launches, largest.blocks_per_launch);
  }
  std::vector<SweptComparison> sweep = measure_sweep(session, plan, std::move(already));
  settle_sweep(store, sweep);
  print_sweep(context, session, sweep);
  return exit_of(sweep, plan.points.size() - sweep.size());
}

}  // namespace syslab::cli
