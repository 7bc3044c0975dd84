#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/folder_of_mine.hpp"
#include "cli/handout.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "session/forecast.hpp"
#include "session/selection.hpp"
#include "session/session.hpp"

namespace syslab::cli {
namespace {

// A step as it is still to be run, with predictions that know what is stored.
struct Ahead {
  const evidence::Step* step = nullptr;
  std::vector<plan::PlannedCase> cases;
  std::size_t too_long = 0;  // of its cases: run passes over them
  double points = 0, seconds = 0;
};

std::vector<Ahead> what_is_ahead(const Handout& handout, const evidence::Schedule& schedule,
                                 const StoredEvidence& stored, const store::Store* store) {
  std::vector<Ahead> ahead;
  for (const evidence::Step& step : schedule.steps) {
    plan::Plan rest = rest_of(handout, step, stored);
    if (rest.cases.empty()) continue;
    forecast(rest, store, to_conditions({}, rest, false));
    Ahead one{.step = &step};
    for (plan::PlannedCase& planned : rest.cases) {
      if (evidence::seconds_of(planned) > usual_timeout()) {
        ++one.too_long;
        continue;
      }
      one.seconds += evidence::seconds_of(planned).count();
      one.cases.push_back(std::move(planned));
    }
    one.points = step.points * static_cast<double>(one.cases.size()) / static_cast<double>(step.cases.size());
    ahead.push_back(std::move(one));
  }
  return ahead;
}

// What a run with a budget does with a step: all of it, some cases, or none; and what it has spent then.
struct Taken {
  bool all = true, some = false;
};

Taken take(const Ahead& one, double budget, double& spent) {
  Taken taken;
  const double left = budget - spent;
  double fits = 0;
  for (const plan::PlannedCase& planned : one.cases) {
    const double seconds = evidence::seconds_of(planned).count();
    if (seconds > left) continue;
    taken.some = left > 0;
    fits += seconds;
  }
  taken.all = fits <= left && fits >= one.seconds;
  spent += std::min(fits, std::max(left, 0.0));
  return taken;
}

std::string duration(double seconds) {
  return format_duration(std::chrono::duration_cast<Nanoseconds>(Seconds(seconds)));
}

}  // namespace

Exit plan_handout(const Context& context, const PlanOptions& options) {
  refuse_choices("plan", options.selection, options.measuring);
  const plan::Selection selection = select_for_handout(context, options.selection, options.measuring.memory_limit);
  const Handout handout = handout_of(context, options.selection.handout, selection);
  const double budget = options.budget.empty() ? 0 : Seconds(duration_option("--budget", options.budget)).count();
  std::optional<store::Store> store;
  std::error_code ignored;
  if (std::filesystem::exists(context.global.database, ignored)) {
    store.emplace(store::Store::open(context.global.database, store::Mode::read_only));
  }
  const StoredEvidence stored = store ? StoredEvidence(*store, usual_timeout()) : StoredEvidence();
  const evidence::Standing standing = standing_of(handout, stored);
  const evidence::Schedule schedule = schedule_of(context, handout, selection, true);
  const std::vector<Ahead> ahead = what_is_ahead(handout, schedule, stored, store ? &*store : nullptr);
  const Console& console = context.console;
  double until = 0, spent = 0;
  Json steps = Json::array();
  std::string text = standing_text(handout.year, standing) + "\n";
  std::size_t number = 0;
  std::size_t too_long = 0;
  bool ended = false;
  for (const Ahead& one : ahead) {
    too_long += one.too_long;
    if (one.cases.empty()) continue;
    until += one.seconds;
    const Taken taken = budget > 0 ? take(one, budget, spent) : Taken{.all = true, .some = true};
    if (budget > 0 && !ended && !taken.some) {
      ended = true;
      text += fmt::format("  -- a budget of {} ends about here --\n", duration(budget));
    }
    const std::string stage(to_string(one.step->stage));
    if (console.json()) {
      Json cases = Json::array();
      for (const plan::PlannedCase& planned : one.cases) cases.push_back(label_of(planned));
      steps.push_back({{"experiment", one.step->experiment->id},
                       {"stage", stage},
                       {"round", one.step->round},
                       {"points", one.points},
                       {"seconds", one.seconds},
                       {"until", until},
                       {"within_budget", taken.all},
                       {"cases", cases}});
    }
    text +=
        fmt::format("{:>4}  {:<5}  {:<46}  {:>10}  {:>9}  {:>4.2g} points\n", ++number, stage, one.step->experiment->id,
                    counted(static_cast<std::int64_t>(one.cases.size()), "case"), duration(one.seconds), one.points);
    if (taken.some && !taken.all) text += "      of which not all fit into the budget\n";
  }
  if (console.json()) {
    Json document = to_json(standing);
    document["handout"] = handout.year;
    document["steps"] = steps;
    document["predicted_seconds"] = until;
    document["too_long"] = too_long;
    document["impossible"] = impossible_texts(schedule.impossible);
    console.print_document(document);
    return Exit::well;
  }
  for (const std::string& one : impossible_texts(schedule.impossible)) text += one + "\n";
  text += ahead.empty() ? std::string("nothing is left to measure here\n")
                        : fmt::format("{} ahead, about {}\n", counted(static_cast<std::int64_t>(number), "step"),
                                      duration(until));
  if (too_long > 0) {
    text +=
        fmt::format("{} would take longer than {} here: `run --handout` passes over them unless --timeout says more\n",
                    counted(static_cast<std::int64_t>(too_long), "case"), duration(Seconds(usual_timeout()).count()));
  }
  console.print(text);
  return Exit::well;
}

}  // namespace syslab::cli
