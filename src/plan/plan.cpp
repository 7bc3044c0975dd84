#include "plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/contains.hpp"
#include "core/error.hpp"
#include "core/ids.hpp"
#include "core/random.hpp"
#include "core/text/json_text.hpp"
#include "plan/expand.hpp"

namespace syslab::plan {
namespace {

using registry::Experiment;

// "9.0", from 90.
std::string capability(int sm) { return fmt::format("{}.{}", sm / 10, sm % 10); }

// Why this build or this machine cannot run the case at all.
std::optional<std::string> unavailable(const Experiment& experiment, const Chosen& chosen, const Machine& machine) {
  if (machine.is_any) return std::nullopt;
  const registry::Implementation* known = experiment.find_implementation(chosen.name);
  if (known != nullptr && !known->unavailable.empty()) return fmt::format("{} {}", chosen.name, known->unavailable);
  if (chosen.device != DeviceKind::cuda) return std::nullopt;
  if (!machine.has_gpu()) return fmt::format("{} needs a GPU: {}", chosen.name, machine.why_no_gpu);
  if (known != nullptr && known->minimum_sm > machine.sm) {
    return fmt::format("{} needs a GPU of compute capability {}, and {} has {}; choose another implementation",
                       chosen.name, capability(known->minimum_sm), machine.gpu, capability(machine.sm));
  }
  if (known != nullptr && known->maximum_sm != 0 && known->maximum_sm < machine.sm) {
    return fmt::format("{} runs on GPUs of compute capability {}{}, and {} has {}; choose another implementation",
                       chosen.name, capability(known->maximum_sm),
                       known->maximum_sm == known->minimum_sm ? " alone" : " at most", machine.gpu,
                       capability(machine.sm));
  }
  return std::nullopt;
}

std::optional<std::string> skip_reason(const Experiment& experiment, const Params& params, const Chosen& chosen,
                                       const Machine& machine) {
  const std::string& implementation = chosen.name;
  if (auto reason = unavailable(experiment, chosen, machine)) return reason;
  for (const registry::SkipRule& rule : experiment.skips) {
    if (rule.applies(params, implementation)) return rule.reason;
  }
  const registry::Implementation* known = experiment.find_implementation(implementation);
  if (known != nullptr && !known->dtypes.empty() && params.has("dtype")) {
    const std::string dtype = to_string(params.at("dtype"));
    if (std::find(known->dtypes.begin(), known->dtypes.end(), dtype) == known->dtypes.end()) {
      return fmt::format("{} has no {} kernel", implementation, dtype);
    }
  }
  return std::nullopt;
}

// Functions that describe a case before it runs are told how many ranks will run it.
Params of_ranks(Params params, int world_size) {
  params.set("world_size", std::int64_t{world_size});
  return params;
}

void check_points(const Experiment& experiment, const std::vector<Params>& points, const std::vector<int>& sizes) {
  if (!experiment.expectation) return;
  for (const Params& params : points) {
    for (const int size : sizes) experiment.expectation(of_ranks(params, size));
  }
}

// Marks cases that an implementation of ours would refuse. Nobody predicts what such a case would need.
void note_refusal(PlannedCase& planned) {
  planned.skip_reason = refusal_of(*planned.experiment, planned.params, planned.implementation, planned.world_size);
  if (!planned.skip_reason) return;
  planned.unsupported = true;
  planned.predicted_bytes = 0;
}

// Only experiment and parameters, so that all implementations get the same inputs.
std::uint64_t case_seed(std::uint64_t root_seed, const Experiment& experiment, const Params& params,
                        std::string_view law) {
  return RandomStream::derive(root_seed, experiment.id, json_text(params.to_json()), law).key();
}

// Where no machine in particular is meant, an implementation that this build cannot run refuses for that reason only.
bool lacks_the_build(const Experiment& experiment, const Chosen& chosen, const Machine& machine) {
  const registry::Implementation* known = experiment.find_implementation(chosen.name);
  return machine.is_any && known != nullptr && !known->unavailable.empty();
}

// Whether its experiment times it: some check what is handed in, and leave its time to another.
bool is_timed(const PlannedCase& planned) {
  const Experiment& experiment = *planned.experiment;
  return experiment.times_mine || experiment.implementations.empty() ||
         experiment.find_implementation(planned.implementation) != nullptr;
}

// Why the case does not run, if it does not.
void note_skip(PlannedCase& planned, const Machine& machine) {
  const Experiment& experiment = *planned.experiment;
  const Chosen chosen{planned.implementation, planned.device};
  if (planned.task == Task::law) {
    planned.skip_reason = unavailable(experiment, chosen, machine);
  } else if (!is_timed(planned)) {
    planned.skip_reason = "what is handed in is checked and not timed here: syslab check " + experiment.id;
    if (!experiment.timed_by.empty()) *planned.skip_reason += "; `syslab run " + experiment.timed_by + "` times it";
    planned.unsupported = true;
  } else {
    planned.skip_reason = skip_reason(experiment, planned.params, chosen, machine);
    if (!planned.skip_reason && !lacks_the_build(experiment, chosen, machine)) note_refusal(planned);
    if (!planned.skip_reason) note_too_many_ranks(planned, machine);
  }
}

void append(Plan& plan, const Experiment& experiment, const Params& params, const Chosen& chosen, int world_size,
            const std::string& law) {
  const Machine& machine = plan.machine;
  PlannedCase planned;
  planned.index = static_cast<int>(plan.cases.size());
  planned.experiment = &experiment;
  planned.params = params;
  planned.implementation = chosen.name;
  planned.device = chosen.device;
  planned.world_size = world_size;
  planned.seed = case_seed(plan.root_seed, experiment, params, law);
  planned.case_uid = case_uid(experiment.id, experiment.version, params);
  if (!law.empty()) {
    planned.task = Task::law;
    planned.law = law;
  } else if (is_timed(planned) && experiment.memory_bytes) {
    planned.predicted_bytes = experiment.memory_bytes(of_ranks(params, world_size), chosen.name);
    if (chosen.device == DeviceKind::cpu) planned.predicted_bytes *= world_size;  // each rank has a GPU of its own
  }
  note_skip(planned, machine);
  plan.cases.push_back(std::move(planned));
}

Plan empty_plan(const Selection& selection) {
  Plan plan;
  plan.mine = selection.mine;
  plan.author = selection.author;
  plan.root_seed = selection.root_seed;
  plan.machine = selection.machine;
  plan.registry = selection.registry;
  return plan;
}

// The reference is the oracle: comparing it with itself would prove nothing.
bool would_compare_with_itself(const Experiment& experiment, const std::string& implementation, const LawInfo& law) {
  const registry::Implementation* known = experiment.find_implementation(implementation);
  return known != nullptr && known->role == Role::reference && law.against_oracle;
}

bool is_bound(const LawInfo& law, bool ours) {
  return law.bound == LawInfo::Bound::all || ours == (law.bound == LawInfo::Bound::ours);
}

bool assigns_device(const Selection& selection) {
  return std::any_of(selection.assignments.begin(), selection.assignments.end(),
                     [](const AxisAssignment& it) { return it.name == "device"; });
}

// An empty plan is an error if a missing device is the reason.
void require_something_on(const std::vector<const Experiment*>& experiments, const Selection& selection,
                          const Plan& plan) {
  if (!plan.cases.empty() || (selection.devices.empty() && !assigns_device(selection))) return;
  Selection anywhere = selection;
  anywhere.devices = {"cpu", "cuda"};
  std::erase_if(anywhere.assignments, [](const AxisAssignment& it) { return it.name == "device"; });
  std::string known;
  for (const Experiment* experiment : experiments) {
    if (anywhere.preset && experiment->presets.find(*anywhere.preset) == experiment->presets.end()) continue;
    for (const Chosen& one : implementations(*experiment, anywhere, false)) {
      known += fmt::format("{}{} on {}", known.empty() ? "" : ", ", one.name, to_string(one.device));
    }
  }
  throw Error(ErrorKind::usage, fmt::format("nothing that is selected runs on the device asked for; there are {}",
                                            known.empty() ? "none" : known));
}

}  // namespace

Plan make_plan(const registry::Registry& registry, const Selection& selection) {
  const auto experiments = selected_experiments(registry, selection);
  check_names(experiments, selection);
  Plan plan = empty_plan(selection);
  for (const Experiment* experiment : experiments) {
    const std::vector<Params> points = grid(*experiment, selection);
    if (points.empty()) continue;
    const std::vector<int> sizes = world_sizes(*experiment, selection);
    check_points(*experiment, points, sizes);
    const std::vector<Chosen> chosen = implementations(*experiment, selection, false);
    for (const Params& params : points) {
      for (const int size : sizes) {
        for (const Chosen& one : chosen) append(plan, *experiment, params, one, size, {});
      }
    }
  }
  // Nobody chose an unnamed preset: that none of it runs there is no mistake of theirs.
  if (!selection.unnamed_preset) require_something_on(experiments, selection, plan);
  return plan;
}

std::optional<Contract> contract_of(const PlannedCase& planned) {
  if (!planned.params.has("contract")) return std::nullopt;
  return syslab::contract_of(to_string(planned.params.at("contract")));
}

Plan make_law_plan(const registry::Registry& registry, const Selection& selection, Contract contract) {
  const auto experiments = selected_experiments(registry, selection);
  check_names(experiments, selection);
  Plan plan = empty_plan(selection);
  const Params params{{"contract", std::string(to_string(contract))}};
  for (const Experiment* experiment : experiments) {
    if (selection.preset && experiment->presets.find(*selection.preset) == experiment->presets.end()) continue;
    for (const Chosen& one : implementations(*experiment, selection, true)) {
      for (const LawInfo& law : experiment->laws) {
        if (would_compare_with_itself(*experiment, one.name, law)) continue;
        const bool ours = experiment->find_implementation(one.name) != nullptr;
        if (!is_bound(law, ours)) continue;
        if (ours && experiment->is_law_of && !experiment->is_law_of(law.id, one.name)) continue;
        if (ours && experiment->starts_ranks(one.name)) continue;
        append(plan, *experiment, params, one, 1, law.id);
      }
    }
  }
  return plan;
}

std::vector<Submitted> joining(const std::vector<Submitted>& mine, const registry::Experiment& experiment) {
  std::vector<Submitted> joined;
  if (!experiment.accepts_mine) return joined;
  for (const Submitted& one : mine) {
    if (one.answers.empty() || contains(one.answers, experiment.id)) joined.push_back(one);
  }
  return joined;
}

void leave_out_unmeasured(Plan& laws, const Plan& measured) {
  std::map<std::pair<const Experiment*, std::string>, bool> all_skipped;
  for (const PlannedCase& planned : measured.cases) {
    const auto [at, first] = all_skipped.try_emplace({planned.experiment, planned.implementation}, true);
    at->second = at->second && planned.skip_reason.has_value();
  }
  std::erase_if(laws.cases, [&](const PlannedCase& law) {
    const auto found = all_skipped.find({law.experiment, law.implementation});
    return found != all_skipped.end() && found->second;
  });
  for (std::size_t i = 0; i < laws.cases.size(); ++i) laws.cases[i].index = static_cast<int>(i);
}

std::optional<std::string> refusal_of(const Experiment& experiment, const Params& params,
                                      std::string_view implementation, int world_size) {
  const bool ours = experiment.find_implementation(implementation) != nullptr;
  return ours && experiment.refusal ? experiment.refusal(of_ranks(params, world_size), implementation) : std::nullopt;
}

void note_too_many_ranks(PlannedCase& planned, const Machine& machine) {
  const int size = planned.world_size;
  if (machine.is_any) return;
  if (size > 1 && machine.ranks > 0 && size > machine.ranks) {
    planned.needs = Shortage{Shortage::Of::ranks, size};
  } else if (size > 1 && planned.device == DeviceKind::cuda && size > machine.gpus) {
    planned.needs = Shortage{Shortage::Of::gpus, size};
  } else {
    return;
  }
  planned.skip_reason = planned.needs->text();
  planned.unsupported = true;
}

void skip_again(PlannedCase& planned, const Machine& machine) {
  PlannedCase again = planned;
  again.skip_reason.reset();
  note_skip(again, machine);
  if (again.skip_reason) planned = std::move(again);
}

Json to_json(const PlannedCase& planned) {
  Json json{{"index", planned.index},
            {"experiment", planned.experiment->id},
            {"version", planned.experiment->version},
            {"params", planned.params.to_json()},
            {"impl", planned.implementation},
            {"device", to_string(planned.device)},
            {"world_size", planned.world_size},
            {"task", to_string(planned.task)},
            {"case_uid", planned.case_uid},
            {"seed", std::to_string(planned.seed)}};  // as text: JSON readers round integers beyond 2^53
  if (planned.task == Task::law) json["law"] = planned.law;
  if (planned.skip_reason) json["skip"] = *planned.skip_reason;
  if (planned.predicted_bytes > 0) json["predicted_bytes"] = planned.predicted_bytes;
  if (!planned.predicted_oom.empty()) json["predicted_oom"] = planned.predicted_oom;
  if (!planned.predicted_from.empty()) {
    json["predicted_seconds"] = Seconds(planned.predicted_time).count();
    json["predicted_from"] = planned.predicted_from;
  }
  return json;
}

}  // namespace syslab::plan
