// gradient_checkpointing: a training step of the transformer that recomputes activations in the backward pass, in
// segments of k blocks; the question is in README.md in this folder. Nested arrangements: checkpoint_schemes.
#include <fmt/format.h>

#include <cmath>

#include "registry/ladder.hpp"
#include "registry/registry.hpp"
#include "registry/values.hpp"
#include "train/measured_step.hpp"
#include "train/peak_memory.hpp"
#include "train/recomputed_against_kept.hpp"
#include "worker/cases/step_case.hpp"

namespace syslab::experiment_gradient_checkpointing {
namespace {

using registry::Need;
using registry::number;
using registry::text;

train::WorkloadOptions options_from(const Params& params, const train::Rung& rung) {
  train::WorkloadOptions options = train::workload_from(params, rung);
  options.model.recompute = model::segments_of(params.number("segment"));
  return options;
}

// Without a backward pass there is no reason to recompute activations.
void expect_backward(const Params& params) {
  if (params.text("mode") != "forward") return;
  throw Error(ErrorKind::usage,
              "gradient_checkpointing: mode=forward has no backward pass, for which activations are made again; take "
              "mode=train (the default) or mode=forward_backward");
}

// Such a segment would be the whole model, which is kept whole: the case of segment=0 under another name.
bool is_more_than_the_model(const Params& params, std::string_view) {
  const std::int64_t layers = options_from(params, train::ladder().back()).config.layers;
  return params.number("segment") > static_cast<double>(layers);
}

// How often blocks ran forward, compared with the formula.
void tell_forwards(worker::CaseContext& context, const train::WorkloadOptions& options, double counted) {
  const bool goes_back = options.mode != train::Mode::forward;
  const std::int64_t layers = options.config.layers;
  const double formula =
      static_cast<double>(goes_back ? half_blocks_forward(options.model.recompute, layers) : 2 * layers) / 2;
  worker::CheckRecord check;
  check.name = "reference:block_forwards";
  check.cases_run = 1;
  check.worst_error = std::abs(counted - formula);
  check.tolerance = 0;
  check.outcome = counted == formula ? Outcome::passed : Outcome::falsified;
  check.message = fmt::format("{} forward passes of a block in a step, {} follow from the formula", counted, formula);
  context.emit(check);
  if (check.outcome != Outcome::passed) throw worker::CheckFailed(check.message);
  context.metric("block_forwards", "1", counted);
  context.metric("block_forwards_formula", "1", formula);
}

// The numbers that determine the best size of a segment: a stream, and all that a block keeps.
void tell_sizes(worker::CaseContext& context, const train::WorkloadOptions& options) {
  double stream = 0, block = 0;
  for (const train::SavedTensor& one : train::saved_by_block(options)) {
    if (one.name == "ln1.residual") stream = one.bytes;
    block += one.bytes;
  }
  context.metric("stream_bytes", "B", stream);
  context.metric("block_bytes", "B", block);
  context.metric("layers", "1", static_cast<double>(options.config.layers));
}

// What the blocks keep between the passes, read from the activations. A recorded step shows none.
void tell_kept(worker::CaseContext& context, train::Workload& workload) {
  workload.refresh();
  workload.forward();
  std::size_t bytes = 0;
  for (const model::KeptTensor& one : model::listed(*workload.training().kept())) {
    bytes += one.name.starts_with("layers.") ? one.bytes() : 0;
  }
  context.metric("kept_bytes", "B", static_cast<double>(bytes));
}

void run_case(worker::CaseContext& context) {
  const train::Rung& rung = train::find_rung(context.request().implementation);
  const train::WorkloadOptions options = options_from(context.params(), rung);
  const std::uint64_t seed = context.request().seed;
  MeasuredStep step = train::measured_step(options, rung, seed);
  step.check = [options, seed, usual = step.check](device::Stream stream) {
    std::vector<StepCheck> all = usual(stream);
    all.push_back(train::recomputed_against_kept(options, stream, seed));
    return all;
  };
  worker::StepCase step_case = worker::step_case_of(step);
  step_case.start = [step, options, seed](device::Stream stream) {
    const auto workload = std::make_shared<train::Workload>(options, stream, seed);
    worker::RunningStep running = worker::running_step_of(workload, step);
    running.tell = [step, options, workload, usual = running.tell](worker::CaseContext& told) {
      usual(told);
      tell_forwards(told, options, workload->block_forwards());
      told.metric("predicted_bytes", "B", train::predicted_bytes(options));
      tell_sizes(told, options);
      if (step.in_phases) tell_kept(told, *workload);
    };
    return running;
  };
  worker::run_step_case(context, step_case);
}

registry::Experiment describe() {
  const Values segments{0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0};
  return registry::experiment("gradient_checkpointing")
      .title("Gradient checkpointing")
      .question(
          "What does a training step hold, and how long does it take, when of each segment of k blocks only the input "
          "is kept and the backward pass runs the segment forward again; and which k is best?")
      .problem("2026", "gradient_checkpointing", 4)
      // Half a block, a block, two: the best segment and its neighbours.
      .evidence({.parts = {"b"}, .grid = {{"segment", {0.5, 1.0, 2.0}}, {"impl", {text("eager")}}}})
      .evidence({.need = Need::asked, .parts = {"b"}, .grid = {{"impl", {text("eager"), text("fused")}}}})
      .evidence({.need = Need::nice, .parts = {"b"}, .preset = "paper"})
      .evidence({.parts = {"b"}, .preset = "laptop", .in_small = true})
      .tags({"model", "memory"})
      .protocol("few")
      .axes(registry::axes_of(train::param_list(),
                              {{"model", {text("xl26")}}, {"context", {number(2048)}}, {"precision", {text("fp32")}}}))
      .axis("segment", segments, "blocks of a segment, 0.5 for attention and feed-forward apart; 0: all is kept")
      .preset("smoke", {{"model", {text("tiny")}},
                        {"layers", {number(4)}},
                        {"batch", {number(2)}},
                        {"context", {number(32)}},
                        {"segment", {0.0, 0.5, 1.0, 2.0}},
                        {"device", {text("cpu"), text("cuda")}},
                        {"impl", registry::names_of(train::ladder(), {"host_eager"})}})
      .preset("laptop", {{"model", {text("cpu10m")}},
                         {"layers", {number(8)}},
                         {"context", {number(128)}},
                         {"segment", {0.0, 0.5, 1.0, 2.0, 4.0}},
                         {"device", {text("cpu")}},
                         {"impl", {text("host")}}})
      .preset("paper",
              {{"context", {number(512), number(2048)}}, {"impl", {text("eager"), text("fused"), text("graph")}}})
      .implementations(registry::implementations_of(train::ladder()))
      .expects(expect_backward)
      .refuses(train::refusal_by_axes)
      .skip_if("a segment of more blocks than the model has keeps all of them: segment=0 measures that",
               is_more_than_the_model)
      .metric("time", "s", "median of the measured steps, each as a whole")
      .metric("time_mean", "s", "mean of the measured steps")
      .metric("backward", "s", "median of the backward pass, with what it makes again, waited for before and after")
      .metric("peak_bytes", "B", "most in use during a step, parameters and all")
      .metric("predicted_bytes", "B", "the same by arithmetic")
      .metric("kept_bytes", "B", "what the blocks keep between forward and backward pass")
      .metric("stream_bytes", "B", "the residual stream where a segment begins, by arithmetic: c")
      .metric("block_bytes", "B", "what a block keeps, by arithmetic: R")
      .metric("layers", "1", "blocks of the model: N")
      .metric("block_forwards", "1",
              "forward passes of a block in a step, counted; block_forwards_formula by arithmetic")
      .oom_is_an_answer()
      .flops(train::flops_by_axes)
      .memory([](const Params& params, std::string_view implementation) {
        return train::predicted_bytes(options_from(params, train::find_rung(implementation)));
      })
      .runs(run_case);
}

SYSLAB_EXPERIMENT(gradient_checkpointing, describe);

}  // namespace
}  // namespace syslab::experiment_gradient_checkpointing
