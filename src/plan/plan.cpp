#include "plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/ids.hpp"
#include "core/random.hpp"
#include "plan/expand.hpp"

namespace syslab::plan {
namespace {

using registry::Experiment;

std::optional<std::string> unavailable(const Experiment& experiment, const std::string& implementation) {
  const registry::Implementation* known = experiment.find_implementation(implementation);
  if (known == nullptr || known->unavailable.empty()) return std::nullopt;
  return fmt::format("{} {}", implementation, known->unavailable);
}

std::optional<std::string> skip_reason(const Experiment& experiment, const Params& params,
                                       const std::string& implementation) {
  if (auto reason = unavailable(experiment, implementation)) return reason;
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

// Experiment and parameters only: all implementations meet the same inputs.
std::uint64_t case_seed(std::uint64_t root_seed, const Experiment& experiment, const Params& params,
                        std::string_view law) {
  return RandomStream::derive(root_seed, experiment.id, params.to_json().dump(), law).key();
}

void append(Plan& plan, const Experiment& experiment, const Params& params, const std::string& implementation,
            const std::string& law) {
  PlannedCase planned;
  planned.index = static_cast<int>(plan.cases.size());
  planned.experiment = &experiment;
  planned.params = params;
  planned.implementation = implementation;
  planned.seed = case_seed(plan.root_seed, experiment, params, law);
  planned.case_uid = case_uid(experiment.id, experiment.version, params);
  if (law.empty()) {
    planned.skip_reason = skip_reason(experiment, params, implementation);
    if (experiment.memory_bytes) planned.predicted_bytes = experiment.memory_bytes(params, implementation);
  } else {
    planned.task = Task::law;
    planned.law = law;
    planned.skip_reason = unavailable(experiment, implementation);
  }
  plan.cases.push_back(std::move(planned));
}

Plan empty_plan(const Selection& selection) {
  Plan plan;
  plan.mine = selection.mine;
  plan.author = selection.author;
  plan.root_seed = selection.root_seed;
  return plan;
}

// The reference is the oracle: comparing it with itself would prove nothing.
bool would_compare_with_itself(const Experiment& experiment, const std::string& implementation,
                               const registry::LawInfo& law) {
  const registry::Implementation* known = experiment.find_implementation(implementation);
  return known != nullptr && known->is_reference && law.against_reference;
}

}  // namespace

Plan make_plan(const registry::Registry& registry, const Selection& selection) {
  const auto experiments = selected_experiments(registry, selection);
  check_names(experiments, selection);
  Plan plan = empty_plan(selection);
  for (const Experiment* experiment : experiments) {
    const std::vector<Params> points = grid(*experiment, selection);
    if (points.empty()) continue;
    const std::vector<std::string> names = implementations(*experiment, selection, false);
    for (const Params& params : points) {
      for (const std::string& name : names) append(plan, *experiment, params, name, {});
    }
  }
  return plan;
}

Plan make_law_plan(const registry::Registry& registry, const Selection& selection, std::string_view contract) {
  if (contract != "handout" && contract != "full") {
    throw Error(ErrorKind::usage, fmt::format("unknown contract '{}' (known: handout, full)", contract));
  }
  const auto experiments = selected_experiments(registry, selection);
  check_names(experiments, selection);
  Plan plan = empty_plan(selection);
  const Params params{{"contract", std::string(contract)}};
  for (const Experiment* experiment : experiments) {
    if (selection.preset && experiment->presets.find(*selection.preset) == experiment->presets.end()) continue;
    for (const std::string& name : implementations(*experiment, selection, true)) {
      for (const registry::LawInfo& law : experiment->laws) {
        if (!would_compare_with_itself(*experiment, name, law)) append(plan, *experiment, params, name, law.id);
      }
    }
  }
  return plan;
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

Json to_json(const PlannedCase& planned) {
  Json json{{"index", planned.index},
            {"experiment", planned.experiment->id},
            {"version", planned.experiment->version},
            {"params", planned.params.to_json()},
            {"impl", planned.implementation},
            {"world_size", planned.world_size},
            {"task", planned.task == Task::law ? "law" : "measure"},
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
