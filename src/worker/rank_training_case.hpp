// A training step of several ranks (parallel::MeasuredDataParallel, parallel::MeasuredFsdp) as a case of the lab.
// Templates, because this tower does not know that one: they take anything with the members they read.
//
//   worker::run_rank_training(context, measured, parallel::in_step(context.request()),
//                             [&](comm::Communicator& ranks, device::Stream stream) { return started(…); });
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "worker/case_context.hpp"
#include "worker/rank_case.hpp"

namespace syslab::worker {

// That a loss is a number.
StepCheck loss_check(double loss);

// Steps with new tokens each, whose loss is a number.
template <typename Workload>
RankSeries training_steps(const std::shared_ptr<Workload>& workload) {
  RankSeries steps;
  steps.refresh = [workload] { workload->refresh(); };
  steps.call = [workload] { workload->run(); };
  steps.verify = [workload] { return loss_check(workload->loss()); };
  return steps;
}

// The same, phase by phase, of each of which something is kept (parallel::PhasedSteps): of the last one once keep() has
// been called at the end.
template <typename Steps>
RankSeries phased_steps(const std::shared_ptr<Steps>& steps) {
  RankSeries series = training_steps(steps->workload());
  series.refresh = [steps, refresh = series.refresh] {
    steps->keep();
    refresh();
  };
  series.call = [steps] { steps->step(); };
  return series;
}

// Metrics of every training step, of this rank's: tokens of a rank's step, parameters of the model, loss over the rows
// of all ranks. `seconds`: of each step.
void tell_training(CaseContext& context, double tokens, double parameters, double loss,
                   const std::vector<double>& seconds);

// Series "forward", "backward" and "update" of steps that were kept, whose ends of phases (parallel::PhaseEnds) `ends`
// gives.
template <typename Kept, typename Ends = std::identity>
void emit_phases(CaseContext& context, std::span<const Kept> steps, const Ends& ends = {}) {
  if (steps.empty()) return;
  emit_series(context, "forward", steps, [&](const Kept& one) { return ends(one).forward; });
  emit_series(context, "backward", steps, [&](const Kept& one) { return ends(one).backward - ends(one).forward; });
  emit_series(context, "update", steps, [&](const Kept& one) { return ends(one).update - ends(one).backward; });
}

// A stretch of a step, in seconds from its beginning.
void emit_span(CaseContext& context, std::string track, std::string name, std::string category, double begin,
               double end);

// The strategy's certificate to the bit, of which Error(check) says that it does not hold; then what `compare` found.
std::vector<StepCheck> with_certificate(const std::function<std::vector<StepCheck>()>& compare);

// The journey on each rank: meets the others, certifies and checks what is measured, and times what `start` gives for
// the communicator of these ranks. `join` gives the owner of that and keeps a RankCase in step by it. Unsupported,
// before there is a rank to meet, with the reason why it cannot be measured here.
template <typename Measured, typename Join, typename Start>
void run_rank_training(CaseContext& context, const Measured& measured, const Join& join, const Start& start) {
  if (measured.refusal) throw Unsupported(*measured.refusal);
  RankCase made;
  made.device = measured.device;
  const auto ranks = join(made);
  made.check = [&](device::Stream stream) {
    return with_certificate([&] {
      std::vector<StepCheck> found;
      for (const auto& one : measured.check(*ranks, stream)) {
        found.push_back({one.name, one.error, one.tolerance, one.message});
      }
      return found;
    });
  };
  made.start = [&](device::Stream stream) { return start(*ranks, stream); };
  run_rank_case(context, made);
}

}  // namespace syslab::worker
