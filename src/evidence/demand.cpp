#include "evidence/demand.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "core/error.hpp"
#include "plan/breadth_first.hpp"
#include "plan/predict.hpp"

namespace syslab::evidence {
namespace {

using registry::Evidence;
using registry::Experiment;
using registry::Need;
using registry::Preset;

bool is_of(const Evidence& evidence, const std::string& handout) {
  return evidence.handout.empty() || evidence.handout == handout;
}

std::vector<std::string> problems_of(const Experiment& experiment, const std::string& handout) {
  std::vector<std::string> problems;
  for (const registry::HandoutProblem& one : experiment.problems) {
    if (one.handout == handout) problems.push_back(one.problem);
  }
  return problems;
}

std::vector<Evidence> evidence_of(const Experiment& experiment) {
  if (!experiment.evidence.empty() || experiment.problems.empty()) return experiment.evidence;
  std::vector<Evidence> made;
  if (experiment.presets.contains("paper")) {
    made.push_back({.preset = "paper", .coarse = true});
    made.push_back({.need = Need::asked, .preset = "paper"});
  }
  if (experiment.presets.contains("laptop")) made.push_back({.preset = "laptop", .in_small = true});
  return made;
}

std::vector<std::size_t> answered(const Experiment& experiment, const Evidence& evidence, const std::string& handout,
                                  const std::vector<Part>& parts) {
  std::vector<std::string> problems = problems_of(experiment, handout);
  if (!evidence.problem.empty()) problems = {evidence.problem};
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (std::ranges::count(problems, parts[i].problem) == 0) continue;
    if (evidence.parts.empty() || std::ranges::count(evidence.parts, parts[i].letter) > 0) found.push_back(i);
  }
  return found;
}

// What must not be thinned: these are not points of a grid.
bool is_choice(const std::string& name) { return name == "impl" || name == "device"; }

Preset grid_of(const Experiment& experiment, const Evidence& evidence) {
  Preset grid;
  if (!evidence.preset.empty()) grid = experiment.presets.at(evidence.preset);
  if (evidence.coarse) {
    for (const Axis& axis : experiment.axes) grid.try_emplace(axis.name, axis.values);
    if (experiment.takes_ranks()) grid.try_emplace("world_size", experiment.ranks.values);
    for (auto& [name, values] : grid) {
      if (!is_choice(name)) values = ends_and_middle(values);
    }
  }
  for (const auto& [name, values] : evidence.grid) grid[name] = values;
  return grid;
}

plan::Selection selection_of(const Experiment& experiment, const plan::Selection& base) {
  plan::Selection selection = base;
  selection.patterns = {experiment.id};
  selection.handout.clear();  // an experiment may help to answer what it does not pose
  selection.preset.reset();
  selection.mine = plan::joining(base.mine, experiment);
  return selection;
}

// As `run` and `check` have it: ours keep all that they declare, somebody's own what the hand-out asks.
Contract contract_of(const plan::Selection& selection) {
  return selection.mine.empty() ? Contract::full : Contract::handout;
}

// What is handed in, and what is timed beside it, stays where ours run: sizes of a GPU are none for a class on CPUs.
void keep_mine_beside_ours(plan::Plan& plan, const Experiment& experiment) {
  const auto is_ours = [&](const plan::PlannedCase& one) {
    const registry::Implementation* known = experiment.find_implementation(one.implementation);
    return known != nullptr && !known->beside_classes;
  };
  std::set<DeviceKind> devices;
  for (const plan::PlannedCase& one : plan.cases) {
    if (is_ours(one)) devices.insert(one.device);
  }
  if (devices.empty()) return;
  std::erase_if(plan.cases,
                [&](const plan::PlannedCase& one) { return !is_ours(one) && !devices.contains(one.device); });
}

plan::Plan plan_of(const registry::Registry& registry, const Evidence& evidence, const Experiment& experiment,
                   const plan::Selection& selection) {
  if (evidence.laws) return plan::make_law_plan(registry, selection, contract_of(selection));
  plan::Plan plan = plan::make_plan(registry, selection);
  if (!selection.mine.empty()) keep_mine_beside_ours(plan, experiment);
  return plan;
}

// Cases that a rule or an implementation refuses whatever the machine, such as a dtype that a kernel has not: nobody
// asks for those.
void leave_out_impossible(Demand& demand) {
  std::erase_if(demand.anywhere.cases, [](const plan::PlannedCase& one) { return one.skip_reason.has_value(); });
  std::set<std::string> possible;
  for (const plan::PlannedCase& one : demand.anywhere.cases) possible.insert(plan::duration_key(one));
  std::erase_if(demand.here.cases, [&](const plan::PlannedCase& one) {
    return one.skip_reason && !possible.contains(plan::duration_key(one));
  });
}

}  // namespace

Values ends_and_middle(const Values& values) {
  const std::vector<int> steps = plan::halving_steps(values.size());
  Values kept;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (steps[i] <= 1) kept.push_back(values[i]);
  }
  return kept;
}

std::vector<Demand> demands_of(const registry::Registry& registry, const std::string& handout,
                               const std::vector<Part>& parts, const plan::Selection& base) {
  std::vector<Demand> demands;
  for (const Experiment& experiment : registry.experiments()) {
    for (const Evidence& evidence : evidence_of(experiment)) {
      if (!is_of(evidence, handout) || (evidence.in_small && base.machine.has_gpu())) continue;
      if (evidence.problem.empty() && problems_of(experiment, handout).empty()) continue;
      Demand demand;
      demand.parts = answered(experiment, evidence, handout, parts);
      if (demand.parts.empty()) {
        if (evidence.handout.empty()) continue;  // of a problem, or a part, that the other hand-out alone has
        throw Error(ErrorKind::internal,
                    fmt::format("experiment '{}': evidence of a part that the hand-out of {} does not ask for",
                                experiment.id, handout));
      }
      demand.experiment = &experiment;
      demand.need = evidence.need;
      demand.laws = evidence.laws;
      demand.in_small = evidence.in_small;
      plan::Selection selection = selection_of(experiment, base);
      selection.unnamed_preset = grid_of(experiment, evidence);
      demand.here = plan_of(registry, evidence, experiment, selection);
      selection.machine = plan::Machine::any();
      selection.devices.clear();
      demand.anywhere = plan_of(registry, evidence, experiment, selection);
      leave_out_impossible(demand);
      demands.push_back(std::move(demand));
    }
  }
  return demands;
}

plan::Plan all_laws(const registry::Registry& registry, const std::string& handout, const plan::Selection& base) {
  plan::Plan all;
  std::set<std::tuple<std::string, std::string, DeviceKind>> known;  // of law, implementation and device
  for (const Experiment& experiment : registry.experiments()) {
    if (experiment.laws.empty() || problems_of(experiment, handout).empty()) continue;
    if (experiment.takes_ranks()) continue;  // certified by the very runs that measure it
    const plan::Selection selection = selection_of(experiment, base);
    plan::Plan laws = plan::make_law_plan(registry, selection, contract_of(selection));
    for (plan::PlannedCase& one : laws.cases) {
      if (known.insert({one.law, one.implementation, one.device}).second) all.cases.push_back(std::move(one));
    }
  }
  return all;
}

}  // namespace syslab::evidence
