#include "experiments/fsdp/fsdp_case.hpp"

#include <fmt/format.h>

#include <memory>
#include <span>
#include <utility>

#include "parallel/fsdp_state.hpp"
#include "parallel/measured_fsdp.hpp"
#include "parallel/phased_steps.hpp"
#include "parallel/rank_memory.hpp"
#include "parallel/rank_training.hpp"
#include "registry/rank_training.hpp"
#include "registry/values.hpp"
#include "worker/rank_training_case.hpp"

namespace syslab {
namespace {

using parallel::FsdpWorkload;
using parallel::FsdpWorkloadOptions;
using parallel::GatherTimes;
using parallel::MeasuredFsdp;
using registry::number;
using registry::text;

parallel::FsdpStepOptions sharding_of(const Params& params) {
  return parallel::fsdp_step_options(parallel::parse_granularity(params.text("granularity")));
}

FsdpWorkloadOptions options_of(const worker::CaseRequest& request, const train::Rung& rung) {
  FsdpWorkloadOptions options{.step = parallel::rank_workload(request.params, rung, request.world_size),
                              .sharding = sharding_of(request.params)};
  options.sharding.fsdp.gather.timing = true;
  return options;
}

// What is kept of a step, in seconds from its beginning.
struct Kept {
  parallel::PhaseEnds ends;
  double exposed_forward = 0, exposed_backward = 0, gathering = 0;
  std::vector<GatherTimes> gathers;
};
using Steps = parallel::PhasedSteps<FsdpWorkload, Kept>;

Kept kept(FsdpWorkload& run, const parallel::PhaseEnds& ends) {
  Kept made{.ends = ends, .gathers = run.step().fsdp().gathered().times()};
  for (const GatherTimes& one : made.gathers) {
    (one.forward ? made.exposed_forward : made.exposed_backward) += one.exposed().count();
    made.gathering += (one.end - one.start).count();
  }
  return made;
}

// The last step as spans: its phases; of each gather when it ran, and how long computing waited for it.
void draw(worker::CaseContext& context, const FsdpWorkload& run, const Kept& step) {
  worker::emit_span(context, "compute", "forward", "phase", 0, step.ends.forward);
  worker::emit_span(context, "compute", "backward", "phase", step.ends.forward, step.ends.backward);
  worker::emit_span(context, "compute", "update", "phase", step.ends.backward, step.ends.update);
  for (const GatherTimes& one : step.gathers) {
    const std::string name = run.unit_name(one.unit), pass = one.forward ? "forward" : "backward";
    worker::emit_span(context, "gather", name, pass, one.start.count(), one.end.count());
    worker::emit_span(context, "wait", name, pass, one.needed.count(), one.first_use.count());
  }
}

void tell_phases(worker::CaseContext& context, const FsdpWorkload& run, std::span<const Kept> steps) {
  if (steps.empty()) return;
  worker::emit_series(context, "forward", steps, [](const Kept& one) { return one.ends.forward; });
  worker::emit_series(context, "backward", steps, [](const Kept& one) { return one.ends.backward - one.ends.forward; });
  worker::emit_series(context, "update", steps, [](const Kept& one) { return one.ends.update - one.ends.backward; });
  worker::emit_series(context, "gathering", steps, [](const Kept& one) { return one.gathering; });
  worker::emit_series(context, "exposed_forward", steps, [](const Kept& one) { return one.exposed_forward; });
  worker::emit_series(context, "exposed_backward", steps, [](const Kept& one) { return one.exposed_backward; });
  draw(context, run, steps.back());
}

void tell_bytes(worker::CaseContext& context, FsdpWorkload& run, const model::ModelConfig& config) {
  const parallel::FsdpBytes held = run.step().bytes();
  const parallel::FsdpState formula = parallel::fsdp_state(config, context.world_size(), parallel::kFp32State);
  const auto metric = [&](const char* name, auto bytes) { context.metric(name, "B", static_cast<double>(bytes)); };
  metric("state_bytes", held.state());
  metric("formula_bytes", formula.rank_bytes);
  metric("padding_bytes", held.padding);
  metric("slot_bytes", held.slots);
  std::int64_t gathered = 0;
  for (const GatherTimes& one : run.step().fsdp().gathered().times()) gathered += one.bytes;
  metric("gathered_bytes", gathered);
  if (static_cast<double>(held.state()) - static_cast<double>(held.padding) != formula.rank_bytes) {
    throw worker::CheckFailed(fmt::format("{} bytes of state, {} of them padding, where the formula has {}",
                                          held.state(), held.padding, formula.rank_bytes));
  }
}

worker::RankRun started(const MeasuredFsdp& measured, const model::ModelConfig& config, comm::Communicator& ranks,
                        device::Stream stream) {
  const auto steps = std::make_shared<Steps>(measured.start(ranks, stream), stream, kept);
  worker::RankRun made;
  made.owner = steps;
  made.series = {worker::phased_steps(steps)};
  made.tell = [steps, &measured, config](worker::CaseContext& context,
                                         const std::vector<std::vector<double>>& seconds) {
    steps->keep();
    FsdpWorkload& run = *steps->workload();
    run.step().check();  // the same norms on all ranks, and every byte that the plan says
    tell_bytes(context, run, config);
    worker::tell_training(context, measured.tokens, measured.parameters, run.loss(), seconds[0]);
    tell_phases(context, run, worker::last_of(steps->kept(), seconds[0].size()));
  };
  return made;
}

void run_case(worker::CaseContext& context) {
  const train::Rung& rung = train::find_rung(context.request().implementation);
  const FsdpWorkloadOptions options = options_of(context.request(), rung);
  const MeasuredFsdp measured = parallel::measured_fsdp(options, rung, context.request().seed);
  worker::run_rank_training(context, measured, parallel::in_step(context.request()),
                            [&](comm::Communicator& ranks, device::Stream stream) {
                              return started(measured, options.step.config, ranks, stream);
                            });
}

double memory(const Params& params, std::string_view implementation) {
  const auto ranks = static_cast<int>(params.integer("world_size"));
  return parallel::fsdp_memory(parallel::rank_workload(params, train::find_rung(implementation), ranks), ranks,
                               sharding_of(params))
      .total();
}

}  // namespace

registry::Builder fsdp_experiment(std::string id, const std::vector<std::string>& models) {
  registry::Builder made = registry::rank_training_experiment(
      std::move(id), parallel::rank_training_cases(), models,
      "a recorded graph has no place for its gathers: full sharding runs without one");
  made.closed_axis("granularity", {text("layer"), text("block")},
                   "what is gathered together: what one product reads, or the matrices of a block", {})
      .preset("paper", {{"model", registry::texts(models)},
                        {"batch", {number(8)}},
                        {"context", {number(512)}},
                        {"precision", {text("fp32"), text("bf16_fused")}},
                        {"impl", {text("fused")}}})
      .metric("forward", "s", "of the step's phases; with the loss")
      .metric("backward", "s", "from there to the last gradient")
      .metric("update", "s", "from there to the end: what is scattered still, norm and optimizer")
      .metric("gathering", "s", "sum over gathers of the time from start to end")
      .metric("exposed_forward", "s", "sum over gathers of the forward pass of the time that computing waited for them")
      .metric("exposed_backward", "s", "and of the backward pass")
      .metric("state_bytes", "B", "weights, gradients and moments that a rank holds, with padding")
      .metric("formula_bytes", "B", "what the formula has for them, rows of zeros and all")
      .metric("padding_bytes", "B", "of state_bytes: what lies between tensors so that they are aligned")
      .metric("slot_bytes", "B", "for weights that are whole and gradients on their way")
      .metric("gathered_bytes", "B", "that a step gathers, whole")
      .memory(memory)
      .runs(run_case);
  registry::add_training_metrics(made);
  return made;
}

}  // namespace syslab
