#include "evidence/schedule.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "plan/breadth_first.hpp"
#include "plan/predict.hpp"

namespace syslab::evidence {
namespace {

using registry::Need;

Stage stage_of(Need need) {
  return need == Need::least ? Stage::least : need == Need::asked ? Stage::asked : Stage::nice;
}

double worth_of(const Demand& demand, const std::vector<Part>& parts) {
  if (demand.in_small || demand.need == Need::nice) return 0;
  double points = 0;
  for (const std::size_t part : demand.parts) points += parts[part].points;
  return points * (demand.need == Need::least ? kLeastShare : 1 - kLeastShare);
}

void tell(std::vector<Impossible>& all, const plan::PlannedCase& planned) {
  // "flash_mma needs a GPU: …" is one reason, whatever the kernel.
  std::string reason = *planned.skip_reason;
  const std::string named = planned.implementation + " ";
  if (reason.starts_with(named)) reason.erase(0, named.size());
  auto found = std::find_if(all.begin(), all.end(), [&](const Impossible& one) { return one.reason == reason; });
  if (found == all.end()) found = all.insert(all.end(), {reason, {}, 0});
  ++found->cases;
  const std::string& id = planned.experiment->id;
  if (std::ranges::count(found->experiments, id) == 0) found->experiments.push_back(id);
}

class Steps {
 public:
  // `worth`: points of all these cases together.
  void add(plan::Plan plan, Stage stage, double worth) {
    std::vector<plan::PlannedCase> runnable;
    for (plan::PlannedCase& planned : plan.cases) {
      if (!told_.insert(key_of(planned)).second && planned.skip_reason) continue;
      if (planned.skip_reason) {
        tell(made_.impossible, planned);
      } else {
        runnable.push_back(std::move(planned));
      }
    }
    if (runnable.empty()) return;
    const double each = worth / static_cast<double>(runnable.size());
    const bool by_rounds = stage == Stage::asked || stage == Stage::nice;
    const std::vector<int> rounds = plan::grid_steps(runnable);
    std::map<int, Step> steps;
    for (std::size_t i = 0; i < runnable.size(); ++i) {
      Step& step = steps[by_rounds ? rounds[i] : 0];
      step.experiment = runnable[i].experiment;
      step.stage = stage;
      step.round = by_rounds ? rounds[i] : 0;
      step.points += each;
      step.seconds += seconds_of(runnable[i]);
      step.cases.push_back(std::move(runnable[i]));
    }
    for (auto& [round, step] : steps) made_.steps.push_back(std::move(step));
  }

  Schedule finished() {
    std::stable_sort(made_.steps.begin(), made_.steps.end(), [](const Step& a, const Step& b) {
      const auto order = [](const Step& one) {
        const double rate = one.points / std::max(one.seconds.count(), 1e-3);
        return std::tuple(one.stage, one.round, -rate, one.seconds.count(), std::string_view(one.experiment->id));
      };
      return order(a) < order(b);
    });
    std::set<std::string> known;
    for (Step& step : made_.steps) {
      std::erase_if(step.cases, [&](const plan::PlannedCase& one) { return !known.insert(key_of(one)).second; });
      plan::Plan plan;
      plan.cases = std::move(step.cases);
      plan::breadth_first(plan);
      step.cases = std::move(plan.cases);
      step.seconds = Seconds(0);
      for (const plan::PlannedCase& one : step.cases) step.seconds += seconds_of(one);
    }
    std::erase_if(made_.steps, [](const Step& step) { return step.cases.empty(); });
    return std::move(made_);
  }

 private:
  static std::string key_of(const plan::PlannedCase& planned) { return plan::duration_key(planned); }

  Schedule made_;
  std::set<std::string> told_;
};

}  // namespace

Seconds seconds_of(const plan::PlannedCase& planned) {
  constexpr Seconds kArithmetic(0.02), kOther(2);
  constexpr double kFilledPerSecond = 5e9;  // bytes: a process of two ranks with 60 GB each was seen to take 17 s
  if (!planned.predicted_oom.empty()) return Seconds(0);
  if (planned.time_was_measured) return planned.predicted_time;
  const Seconds filling(planned.predicted_bytes / kFilledPerSecond);
  if (!planned.predicted_from.empty()) return Seconds(planned.predicted_time) + filling;
  const bool alone =
      planned.task == plan::Task::measure && planned.device == DeviceKind::cpu && planned.world_size == 1;
  return (alone ? kArithmetic : kOther) + filling;
}

std::string_view to_string(Stage stage) {
  switch (stage) {
    case Stage::least:
      return "least";
    case Stage::laws:
      return "laws";
    case Stage::asked:
      return "asked";
    case Stage::nice:
      return "nice";
  }
  return "";
}

Schedule schedule_of(const std::vector<Demand>& demands, const std::vector<Part>& parts, const plan::Plan& laws,
                     const std::function<void(plan::Plan&)>& predict) {
  Steps steps;
  const auto add = [&](plan::Plan plan, Stage stage, double worth) {
    predict(plan);
    steps.add(std::move(plan), stage, worth);
  };
  for (const Demand& demand : demands) add(demand.here, stage_of(demand.need), worth_of(demand, parts));
  // An experiment at a time: a run has one protocol.
  std::map<const registry::Experiment*, plan::Plan> by_experiment;
  for (const plan::PlannedCase& law : laws.cases) {
    plan::Plan& plan = by_experiment[law.experiment];
    plan.machine = laws.machine;
    plan.cases.push_back(law);
  }
  for (auto& [experiment, plan] : by_experiment) add(std::move(plan), Stage::laws, 0);
  return steps.finished();
}

}  // namespace syslab::evidence
