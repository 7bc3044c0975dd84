// torch_compile: the transformer with an operation a kernel, with its operations fused by hand, and recorded as a
// graph; the question is in README.md in this folder. Attention alone is pytorch_attention's grid.
#include "registry/ladder.hpp"
#include "registry/registry.hpp"
#include "registry/values.hpp"
#include "train/measured_step.hpp"
#include "worker/cases/step_case.hpp"

namespace syslab::experiment_torch_compile {
namespace {

using registry::Need;
using registry::number;
using registry::text;

void run_case(worker::CaseContext& context) {
  const train::Rung& rung = train::find_rung(context.request().implementation);
  worker::run_step_case(context,
                        worker::step_case_of(train::measured_step(context.params(), rung, context.request().seed)));
}

registry::Experiment describe() {
  const Values rungs = registry::names_of(train::ladder(), {"host_eager"});
  return registry::experiment("torch_compile")
      .title("Compiling: fused against unfused kernels")
      .question(
          "What does fusing the operations between matrix products buy for the whole model, forward and as a training "
          "step, and what does recording the step as a graph buy on top?")
      .analogue(
          "`eager` runs a kernel an operation of a framework, `fused` what a compiler would fuse, by hand, and `graph` "
          "the same recorded once; PyTorch's own eager and compiled times stand beside them once they are imported")
      .problem("2025", "torch_compile", 2)
      .problem("2026", "torch_compile", 2)
      // The least is benchmarking_script's: its training steps have these passes. Inference alone keeps nothing.
      .evidence({.need = Need::asked,
                 .parts = {"b"},
                 .grid = {{"mode", {text("forward")}}, {"impl", {text("eager"), text("fused")}}}})
      .evidence({.need = Need::nice, .parts = {"b"}, .grid = {{"impl", {text("eager"), text("fused"), text("graph")}}}})
      .evidence({.need = Need::nice, .parts = {"b"}, .preset = "paper"})
      .evidence({.parts = {"b"}, .preset = "laptop", .in_small = true})
      .tags({"model"})
      .protocol("cs336")
      .axes(registry::axes_of(
          train::param_list(),
          {{"context", {number(512)}}, {"precision", {text("fp32")}}, {"mode", {text("forward"), text("train")}}}))
      .preset("smoke", {{"model", {text("tiny")}},
                        {"batch", {number(2)}},
                        {"context", {number(32)}},
                        {"device", {text("cpu"), text("cuda")}},
                        {"impl", rungs}})
      .preset(
          "laptop",
          {{"model", {text("cpu10m")}}, {"context", {number(64)}}, {"device", {text("cpu")}}, {"impl", {text("host")}}})
      .preset("paper", {{"context", {number(128), number(512)}},
                        {"precision", {text("fp32"), text("bf16_amp")}},
                        {"impl", {text("eager"), text("fused"), text("graph")}}})
      .implementations(registry::implementations_of(train::ladder()))
      .refuses(train::refusal_by_axes)
      .metric("time", "s", "median of the measured steps, each as a whole")
      .metric("time_mean", "s", "mean of the measured steps, as the hand-out asks")
      .metric("time_stddev", "s", "their standard deviation (n − 1)")
      .metric("forward", "s", "median of the forward pass and the loss, waited for before and after")
      .metric("backward", "s", "the same for the backward pass")
      .metric("optimizer", "s", "the same for AdamW")
      .metric("peak_bytes", "B", "most in use during a step, parameters and all")
      .metric("graph_nodes", "1", "kernels and copies of the recorded step")
      .oom_is_an_answer()
      .flops(train::flops_by_axes)
      .memory(train::predicted_bytes_by_axes)
      .runs(run_case);
}

SYSLAB_EXPERIMENT(torch_compile, describe);

}  // namespace
}  // namespace syslab::experiment_torch_compile
