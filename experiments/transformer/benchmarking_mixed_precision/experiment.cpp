// benchmarking_mixed_precision: forward and backward of the transformer in every precision, and the dtype of each of
// its tensors; the question is in README.md in this folder. Norms in half precision: norm_precision.
#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"
#include "model/against_reference.hpp"
#include "registry/ladder.hpp"
#include "registry/registry.hpp"
#include "registry/values.hpp"
#include "train/dtypes_seen.hpp"
#include "train/measured_step.hpp"
#include "worker/cases/step_case.hpp"

namespace syslab::experiment_benchmarking_mixed_precision {
namespace {

using registry::Need;
using registry::number;
using registry::text;

// Reads the dtypes from a training step of the same implementation and precision on a reduced model: they do not
// depend on its sizes, the timed model is without moments where it does not train, and there is room for it next to a
// model that fills the memory.
void tell_dtypes(worker::CaseContext& context, train::WorkloadOptions options, device::Stream stream) {
  options.config = model::reduced(options.config);
  options.mode = train::Mode::train;
  options.batch = 1;
  options.seq = options.config.context;
  train::Workload workload(options, stream, context.request().seed);
  workload.refresh();
  workload.training().begin(options.optimizer.adamw.lr);
  const model::Tokens tokens = workload.training().tokens(0);
  const std::int64_t* targets = tokens.ids + tokens.count();
  Json rows = Json::array();
  for (const train::DtypeSeen& one :
       train::dtypes_seen(workload.model(), tokens, targets, workload.training().optimizer().loss_scale())) {
    rows.push_back({{"tensor", one.tensor}, {"dtype", std::string(to_string(one.dtype))}});
  }
  context.emit(worker::FactRecord{json_text(Json{{"dtypes", rows}})});
}

void run_case(worker::CaseContext& context) {
  const train::Rung& rung = train::find_rung(context.request().implementation);
  const MeasuredStep step = train::measured_step(context.params(), rung, context.request().seed);
  worker::StepCase step_case = worker::step_case_of(step);
  const train::WorkloadOptions options = train::workload_from(context.params(), rung);
  step_case.start = [step, options](device::Stream stream) {
    const auto workload = step.start(stream);
    worker::RunningStep running = worker::running_step_of(workload, step);
    running.tell = [options, stream, usual = running.tell](worker::CaseContext& told) {
      usual(told);
      tell_dtypes(told, options, stream);
    };
    return running;
  };
  worker::run_step_case(context, step_case);
}

registry::Experiment describe() {
  const Values precisions{text("fp32"), text("tf32"), text("bf16_amp"), text("fp16_amp"), text("bf16_fused")};
  return registry::experiment("benchmarking_mixed_precision")
      .title("Benchmarking mixed precision")
      .question(
          "Which dtype has every tensor of the transformer in each precision, and how much faster are forward and "
          "backward pass of each model in half precision?")
      .problem("2025", "benchmarking_mixed_precision", 2)
      .problem("2026", "benchmarking_mixed_precision", 2)
      .evidence({.parts = {"a"},
                 .grid = {{"model", {text("small")}}, {"precision", {text("fp16_amp")}}, {"impl", {text("eager")}}}})
      // What fp32 takes is there already: benchmarking_script measures these phases.
      .evidence({.parts = {"c"},
                 .grid = {{"model", {text("small"), text("medium"), text("large"), text("xl26")}},
                          {"precision", {text("bf16_amp")}},
                          {"impl", {text("eager")}}}})
      .evidence({.need = Need::asked, .parts = {"c"}, .grid = {{"impl", {text("eager")}}}})
      .evidence({.need = Need::nice, .preset = "paper"})
      .evidence({.parts = {"c"}, .preset = "laptop", .in_small = true})
      .tags({"model", "precision"})
      .protocol("cs336")
      .axes(registry::axes_of(train::param_list(), {{"context", {number(512)}},
                                                    {"precision", {text("fp32"), text("bf16_amp")}},
                                                    {"mode", {text("forward_backward")}}}))
      .preset("smoke", {{"model", {text("tiny")}},
                        {"batch", {number(2)}},
                        {"context", {number(32)}},
                        {"precision", precisions},
                        {"device", {text("cpu"), text("cuda")}},
                        {"impl", {text("host"), text("eager"), text("fused")}}})
      .preset("laptop", {{"model", {text("cpu10m")}},
                         {"context", {number(64)}},
                         {"precision", {text("fp32")}},
                         {"device", {text("cpu")}},
                         {"impl", {text("host")}}})
      .preset("paper", {{"context", {number(128), number(512)}},
                        {"precision", precisions},
                        {"impl", {text("eager"), text("fused")}}})
      .implementations(registry::implementations_of(train::ladder()))
      .refuses(train::refusal_by_axes)
      .metric("time", "s", "median of the measured steps, each as a whole")
      .metric("time_mean", "s", "mean of the measured steps, as the hand-out asks")
      .metric("time_stddev", "s", "their standard deviation (n − 1)")
      .metric("forward", "s", "median of the forward pass and the loss; forward_mean, forward_stddev alike")
      .metric("backward", "s", "the same for the backward pass")
      .metric("tflops", "TFLOP/s", "matrix products as the baseline computes them, over the median")
      .metric("peak_bytes", "B", "most in use during a step, parameters and all")
      .metric("loss", "1", "of the last step")
      .oom_is_an_answer()
      .flops(train::flops_by_axes)
      .memory(train::predicted_bytes_by_axes)
      .runs(run_case);
}

SYSLAB_EXPERIMENT(benchmarking_mixed_precision, describe);

}  // namespace
}  // namespace syslab::experiment_benchmarking_mixed_precision
