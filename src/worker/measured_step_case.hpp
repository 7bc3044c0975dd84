// A training step of the workload (train::MeasuredStep) as a case of the lab. A template, because this tower does not
// know that one: it takes anything with the members it reads.
#pragma once

#include <memory>
#include <utility>

#include "worker/step_case.hpp"
#include "worker/tell_rung.hpp"

namespace syslab::worker {

template <typename Workload>
RunningStep running_step_of(const std::shared_ptr<Workload>& workload, bool in_phases, bool trains, double parameters) {
  RunningStep running;
  running.owner = workload;
  running.refresh = [workload] { workload->refresh(); };
  running.step = [workload] { workload->run(); };
  running.verify = [workload] {
    if (const auto wrong = workload->what_is_wrong()) throw CheckFailed(*wrong);
  };
  if (in_phases) {
    running.phases.push_back({"forward", [workload] { workload->forward(); }});
    if (trains || workload->goes_back()) running.phases.push_back({"backward", [workload] { workload->backward(); }});
    if (trains) running.phases.push_back({"optimizer", [workload] { workload->update(); }});
  }
  running.tell = [workload, parameters](CaseContext& context) {
    if constexpr (requires { workload->model().kernels().attention_because; }) {
      const auto& kernels = workload->model().kernels();
      tell_rung(context, "attention", kernels.attention.name, kernels.attention_because);
    }
    context.metric("parameters", "1", parameters);
    context.metric("loss", "1", workload->loss());
    if (workload->graph_nodes() > 0) context.metric("graph_nodes", "1", static_cast<double>(workload->graph_nodes()));
    if (!workload->why_no_graph().empty()) context.missing_metric("graph_nodes", "1", workload->why_no_graph());
  };
  return running;
}

// Unsupported with the reason where the step cannot be run here.
template <typename MeasuredStep>
StepCase step_case_of(const MeasuredStep& step) {
  if (step.refusal) throw Unsupported(*step.refusal);
  StepCase made;
  made.device = step.device;
  made.check = [check = step.check](device::Stream stream) {
    std::vector<StepCheck> checks;
    for (const auto& one : check(stream)) checks.push_back({one.name, one.error, one.tolerance, one.message});
    return checks;
  };
  made.start = [step](device::Stream stream) {
    return running_step_of(step.start(stream), step.in_phases, step.trains, step.parameters);
  };
  made.flops = step.flops;
  made.tokens = step.tokens;
  return made;
}

}  // namespace syslab::worker
