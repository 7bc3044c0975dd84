#include "cli/handout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text/text.hpp"
#include "session/forecast.hpp"
#include "session/selection.hpp"
#include "session/session.hpp"
#include "session/this_machine.hpp"

namespace syslab::cli {
namespace {

std::string state_of(const evidence::PartStanding& part, const std::vector<std::string>& why_not) {
  if (part.answered) {
    if (part.asked.of == 0 || part.asked.all()) return "answered";
    return fmt::format("answered; {} of {} cases of what is asked", part.asked.done, part.asked.of);
  }
  const evidence::Share& first = part.least.of > 0 ? part.least : part.asked;
  std::string text = fmt::format("open: {} of {} cases", first.done, first.of);
  if (!why_not.empty()) text += fmt::format(" ({})", fmt::join(why_not, "; "));
  if (part.small.done > 0) text += "; shown in small";
  return text;
}

// Why this machine cannot run the least that a part wants.
std::vector<std::string> why_not(const Handout& handout, std::size_t part) {
  std::vector<std::string> reasons;
  for (const evidence::Demand& demand : handout.demands) {
    if (demand.need != registry::Need::least || std::ranges::count(demand.parts, part) == 0) continue;
    for (const plan::PlannedCase& one : demand.here.cases) {
      if (!one.skip_reason) continue;
      const std::string reason =
          one.device == DeviceKind::cuda && !demand.here.machine.has_gpu() ? "needs a GPU" : *one.skip_reason;
      if (std::ranges::count(reasons, reason) == 0) reasons.push_back(reason);
    }
  }
  return reasons;
}

}  // namespace

void refuse_choice(bool given, const char* verb, const SelectionOptions& selection, const char* option) {
  if (!given) return;
  throw Error(ErrorKind::usage,
              fmt::format("`{} --handout {}` without an experiment's name measures what the hand-out's deliverables "
                          "want, each as its experiment says; {} is for experiments that are named",
                          verb, selection.handout, option));
}

void refuse_choices(const char* verb, const SelectionOptions& selection, const MeasuringOptions& measuring) {
  refuse_choice(!selection.assignments.empty(), verb, selection, "-a");
  refuse_choice(selection.preset.has_value(), verb, selection, "--preset");
  refuse_choice(!selection.implementations.empty(), verb, selection, "--impl");
  refuse_choice(!selection.shard.empty(), verb, selection, "--shard");
  refuse_choice(measuring.protocol.has_value(), verb, selection, "--protocol");
  refuse_choice(measuring.launches.has_value(), verb, selection, "--launches");
}

Nanoseconds usual_timeout() { return duration_option("--timeout", RunOptions{}.timeout); }

Handout handout_of(const Context& context, const std::string& year, const plan::Selection& selection) {
  Handout handout;
  handout.year = year;
  handout.parts = evidence::parts_of(year);
  handout.demands = evidence::demands_of(context.registry, year, handout.parts, selection);
  handout.frame.mine = selection.mine;
  handout.frame.author = selection.author;
  handout.frame.root_seed = selection.root_seed;
  handout.frame.machine = selection.machine;
  return handout;
}

evidence::Standing standing_of(const Handout& handout, const StoredEvidence& stored) {
  return evidence::standing_of(handout.demands, handout.parts,
                               [&](const plan::PlannedCase& one) { return stored.shows(one, handout.frame); });
}

std::pair<Handout, evidence::Standing> stood(const Context& context, const std::string& year) {
  plan::Selection selection;
  selection.machine = machine_of(context, true);
  Handout handout = handout_of(context, year, selection);
  std::error_code ignored;
  StoredEvidence stored;
  if (std::filesystem::exists(context.global.database, ignored)) {
    stored = StoredEvidence(store::Store::open(context.global.database, store::Mode::read_only), usual_timeout());
  }
  evidence::Standing standing = standing_of(handout, stored);
  return {std::move(handout), std::move(standing)};
}

evidence::Schedule schedule_of(const Context& context, const Handout& handout, const plan::Selection& selection,
                               bool laws) {
  plan::Plan all = handout.frame;
  if (laws) all.cases = evidence::all_laws(context.registry, handout.year, selection).cases;
  const auto predict = [&](plan::Plan& plan) {
    plan.machine = handout.frame.machine;
    forecast(plan, nullptr, to_conditions({}, plan, false));
  };
  return evidence::schedule_of(handout.demands, handout.parts, all, predict);
}

plan::Plan rest_of(const Handout& handout, const evidence::Step& step, const StoredEvidence& stored) {
  plan::Plan rest = handout.frame;
  rest.mine = plan::joining(rest.mine, *step.experiment);
  for (const plan::PlannedCase& one : step.cases) {
    if (stored.holds(one, handout.frame) || stored.failed_here(one, handout.frame)) continue;
    rest.cases.push_back(one);
    rest.cases.back().index = static_cast<int>(rest.cases.size()) - 1;
    rest.cases.back().predicted_oom.clear();  // by whom it is run, anew
  }
  return rest;
}

std::string standing_text(const std::string& year, const evidence::Standing& standing) {
  return fmt::format("{}: {} of {} deliverables, {:.0f} of {:.0f} points' worth", year, standing.answered,
                     standing.deliverables, standing.worth, standing.points);
}

Json to_json(const evidence::Standing& standing) {
  return {{"answered", standing.answered},
          {"deliverables", standing.deliverables},
          {"worth", standing.worth},
          {"points", standing.points}};
}

std::vector<std::string> impossible_texts(const std::vector<evidence::Impossible>& all) {
  std::vector<std::string> texts;
  for (const evidence::Impossible& one : all) {
    texts.push_back(fmt::format("not here: {}: {} of {}", one.reason, counted(one.cases, "case"),
                                fmt::join(one.experiments, ", ")));
  }
  return texts;
}

std::string parts_table(const Console& console, const Handout& handout, const evidence::Standing& standing) {
  std::size_t width = 11;
  for (const evidence::Part& part : handout.parts) width = std::max(width, part.name().size());
  std::string text =
      console.styled(fmt::format("{:<{}}  {:>6}  {:>6}  state", "deliverable", width, "points", "worth"), Style::bold) +
      "\n";
  for (std::size_t i = 0; i < handout.parts.size(); ++i) {
    const evidence::Part& part = handout.parts[i];
    const evidence::PartStanding& one = standing.parts[i];
    text += fmt::format("{:<{}}  {:>6.3g}  {:>6.3g}  {}\n", part.name(), width, part.points, one.worth,
                        state_of(one, why_not(handout, i)));
  }
  return text;
}

}  // namespace syslab::cli
