#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/folder_of_mine.hpp"
#include "cli/handout.hpp"
#include "cli/verbs/verbs.hpp"
#include "core/error.hpp"
#include "core/text/text.hpp"
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

// A step as it is listed.
struct Listed {
  const Ahead* ahead = nullptr;
  double until = 0;  // seconds, of this and all before
  Taken taken;
  bool budget_ends = false;  // before it
};

// Steps of whose cases some are not too long; under a `budget` of 0 all are taken.
std::vector<Listed> listed(const std::vector<Ahead>& ahead, double budget) {
  std::vector<Listed> steps;
  double until = 0, spent = 0;
  bool ended = false;
  for (const Ahead& one : ahead) {
    if (one.cases.empty()) continue;
    until += one.seconds;
    Listed step{.ahead = &one, .until = until, .taken = {.all = true, .some = true}};
    if (budget > 0) step.taken = take(one, budget, spent);
    step.budget_ends = !ended && !step.taken.some;
    ended = ended || step.budget_ends;
    steps.push_back(step);
  }
  return steps;
}

Json json_of(const Listed& listed) {
  const Ahead& one = *listed.ahead;
  Json cases = Json::array();
  for (const plan::PlannedCase& planned : one.cases) cases.push_back(label_of(planned));
  return {{"experiment", one.step->experiment->id},
          {"stage", to_string(one.step->stage)},
          {"round", one.step->round},
          {"points", one.points},
          {"seconds", one.seconds},
          {"until", listed.until},
          {"within_budget", listed.taken.all},
          {"cases", cases}};
}

std::string text_of(const Listed& listed, std::size_t number, double budget) {
  const Ahead& one = *listed.ahead;
  std::string text;
  if (listed.budget_ends) text = fmt::format("  -- a budget of {} ends about here --\n", duration(budget));
  text += fmt::format("{:>4}  {:<5}  {:<46}  {:>10}  {:>9}  {:>4.2g} points\n", number, to_string(one.step->stage),
                      one.step->experiment->id, counted(static_cast<std::int64_t>(one.cases.size()), "case"),
                      duration(one.seconds), one.points);
  if (listed.taken.some && !listed.taken.all) text += "      of which not all fit into the budget\n";
  return text;
}

// What a plan of a whole hand-out says.
struct HandoutPlan {
  std::string year;
  evidence::Standing standing;
  std::vector<std::string> impossible;
  std::vector<Listed> steps;
  double budget = 0;         // seconds; 0: none
  std::size_t too_long = 0;  // cases
  bool is_done = false;      // nothing is ahead, too long or not

  double seconds() const { return steps.empty() ? 0 : steps.back().until; }
};

Json json_of(const HandoutPlan& plan) {
  Json steps = Json::array();
  for (const Listed& one : plan.steps) steps.push_back(json_of(one));
  Json document = to_json(plan.standing);
  document["handout"] = plan.year;
  document["steps"] = steps;
  document["predicted_seconds"] = plan.seconds();
  document["too_long"] = plan.too_long;
  document["impossible"] = plan.impossible;
  return document;
}

std::string text_of(const HandoutPlan& plan) {
  std::string text = standing_text(plan.year, plan.standing) + "\n";
  for (std::size_t i = 0; i < plan.steps.size(); ++i) text += text_of(plan.steps[i], i + 1, plan.budget);
  for (const std::string& one : plan.impossible) text += one + "\n";
  text += plan.is_done
              ? std::string("nothing is left to measure here\n")
              : fmt::format("{} ahead, about {}\n", counted(static_cast<std::int64_t>(plan.steps.size()), "step"),
                            duration(plan.seconds()));
  if (plan.too_long > 0) {
    text += fmt::format(
        "{} would take longer than {} here: `run --handout` passes over them unless --timeout says more\n",
        counted(static_cast<std::int64_t>(plan.too_long), "case"), duration(Seconds(usual_timeout()).count()));
  }
  return text;
}

}  // namespace

Exit plan_handout(const Context& context, const PlanOptions& options) {
  refuse_choices("plan", options.selection, options.measuring);
  if (!options.selection.mine.empty()) warn_of_missing_walls(context.console);  // a folder is looked at by running it
  const plan::Selection selection = select_for_handout(context, options.selection, options.measuring.memory_limit);
  const Handout handout = handout_of(context, options.selection.handout, selection);
  HandoutPlan plan{.year = handout.year};
  if (!options.budget.empty()) plan.budget = Seconds(duration_option("--budget", options.budget)).count();
  std::optional<store::Store> store;
  std::error_code ignored;
  if (std::filesystem::exists(context.global.database, ignored)) {
    store.emplace(store::Store::open(context.global.database, store::Mode::read_only));
  }
  const StoredEvidence stored = store ? StoredEvidence(*store, usual_timeout()) : StoredEvidence();
  plan.standing = standing_of(handout, stored);
  const evidence::Schedule schedule = schedule_of(context, handout, selection, true);
  plan.impossible = impossible_texts(schedule.impossible);
  const std::vector<Ahead> ahead = what_is_ahead(handout, schedule, stored, store ? &*store : nullptr);
  plan.steps = listed(ahead, plan.budget);
  for (const Ahead& one : ahead) plan.too_long += one.too_long;
  plan.is_done = ahead.empty();
  if (context.console.json()) {
    Json json = json_of(plan);
    if (!options.selection.mine.empty()) add_missing_walls(json);
    context.console.print_document(json);
  } else {
    context.console.print(text_of(plan));
  }
  return Exit::well;
}

}  // namespace syslab::cli
