// benchmarking_script: a training step of the hand-out's models, whole and by phases; the question is in README.md in
// this folder.
#include "registry/ladder.hpp"
#include "registry/registry.hpp"
#include "registry/values.hpp"
#include "train/measured_step.hpp"
#include "worker/cases/step_case.hpp"

namespace syslab::experiment_benchmarking_script {
namespace {

using registry::Need;
using registry::number;
using registry::text;

constexpr int kSteady = 5;  // steps of warm-up that the hand-out thinks enough; fewer are a study of the first steps
constexpr std::int64_t kMostWarmup = 10000;

void run_case(worker::CaseContext& context) {
  const train::Rung& rung = train::find_rung(context.request().implementation);
  worker::StepCase step_case =
      worker::step_case_of(train::measured_step(context.params(), rung, context.request().seed));
  const std::int64_t warmup = context.params().integer("warmup");
  if (warmup < 0 || warmup > kMostWarmup) {
    throw Error(ErrorKind::usage,
                "warmup is " + std::to_string(warmup) + "; 0 to " + std::to_string(kMostWarmup) + " steps are wanted");
  }
  step_case.warmup = static_cast<int>(warmup);
  step_case.check_last = *step_case.warmup < kSteady;
  worker::run_step_case(context, step_case);
}

// What answers a deliverable, of this problem and of others.
void declare_evidence(registry::Builder& builder) {
  builder
      .evidence({.handout = "2025",
                 .parts = {"a", "b"},
                 .grid = {{"model", {text("small"), text("medium"), text("large"), text("xl25"), text("xl26")}},
                          {"impl", {text("eager")}}}})
      // The state of 10B alone is 191 GiB: that it does not fit is an answer, and takes no time.
      .evidence({.handout = "2026",
                 .parts = {"a", "b"},
                 .grid = {{"model", {text("small"), text("medium"), text("large"), text("xl26"), text("10B")}},
                          {"impl", {text("eager")}}}})
      .evidence({.parts = {"c"},
                 .grid = {{"model", {text("small")}},
                          {"warmup", {number(0), number(1), number(2), number(kSteady)}},
                          {"impl", {text("eager")}}}})
      // Whether the profile agrees with the program that times.
      .evidence(
          {.problem = "nsys_profile", .parts = {"a"}, .grid = {{"model", {text("small")}}, {"impl", {text("eager")}}}})
      // What fp32 takes, beside half precision; and what a compiler's fusions take, beside op by op.
      .evidence({.problem = "benchmarking_mixed_precision",
                 .parts = {"c"},
                 .grid = {{"model", {text("small"), text("medium"), text("large"), text("xl26")}},
                          {"impl", {text("eager")}}}})
      .evidence({.problem = "torch_compile",
                 .parts = {"b"},
                 .grid = {{"model", {text("small"), text("medium"), text("large"), text("xl26")}},
                          {"impl", {text("eager"), text("fused")}}}})
      // A forward pass is what most GPUs can do of it.
      .evidence({.need = Need::asked,
                 .handout = "2026",
                 .parts = {"b"},
                 .grid = {{"model", {text("10B")}}, {"mode", {text("forward")}}, {"impl", {text("eager")}}}})
      .evidence({.need = Need::asked, .parts = {"c"}, .preset = "warmup"})
      .evidence({.need = Need::nice, .preset = "paper"})
      .evidence({.parts = {"a", "b"}, .preset = "laptop", .in_small = true})
      .evidence({.parts = {"c"}, .preset = "warmup_laptop", .in_small = true});
}

registry::Experiment describe() {
  registry::Builder builder = registry::experiment("benchmarking_script");
  declare_evidence(builder);
  return builder
      .version("2")  // "1": a hand-out's sitting took the first steps in a process that had run others
      .title("Benchmarking script")
      .question(
          "How long do forward pass, backward pass and optimizer step of each model take, how much do repeated steps "
          "differ, and what changes without warm-up?")
      .problem("2025", "benchmarking_script", 4)
      .problem("2026", "benchmarking_script", 4)
      .tags({"model"})
      .protocol("cs336")
      .axes(registry::axes_of(train::param_list(), {{"context", {number(512)}}, {"precision", {text("fp32")}}}))
      .axis("warmup", {number(kSteady)}, "steps before the first that is timed")
      .preset("smoke", {{"model", {text("tiny")}},
                        {"batch", {number(2)}},
                        {"context", {number(32)}},
                        {"device", {text("cpu"), text("cuda")}},
                        {"impl", registry::names_of(train::ladder(), {"host_eager"})}})
      .preset("laptop", {{"model", {text("cpu10m")}},
                         {"context", {number(64), number(128)}},
                         {"device", {text("cpu")}},
                         {"impl", {text("host")}}})
      .preset("paper", {{"context", {number(128), number(256), number(512), number(1024)}},
                        {"precision", {text("fp32"), text("tf32"), text("bf16_amp"), text("bf16_fused")}},
                        {"impl", registry::names_of(train::ladder(), {"host_eager"})}})
      .preset("warmup", {{"model", {text("small"), text("medium"), text("large")}},
                         {"warmup", {number(0), number(1), number(2), number(kSteady)}},
                         {"impl", {text("eager"), text("fused"), text("graph")}}})
      .preset("warmup_laptop", {{"model", {text("cpu10m")}},
                                {"context", {number(64)}},
                                {"warmup", {number(0), number(1), number(2), number(kSteady)}},
                                {"device", {text("cpu")}},
                                {"impl", {text("host")}}})
      .implementations(registry::implementations_of(train::ladder()))
      .refuses(train::refusal_by_axes)
      .metric("time", "s", "median of the measured steps, each as a whole")
      .metric("time_mean", "s", "mean of the measured steps, as the hand-out asks")
      .metric("time_stddev", "s", "their standard deviation (n − 1)")
      .metric("forward", "s",
              "median of the forward pass and the loss, waited for before and after; forward_mean, "
              "forward_stddev alike")
      .metric("backward", "s", "the same for the backward pass")
      .metric("optimizer", "s", "the same for AdamW")
      .metric("tokens_per_second", "1/s", "tokens of a step over the median")
      .metric("tflops", "TFLOP/s", "matrix products as the baseline computes them, over the median")
      .metric("peak_bytes", "B", "most in use during a step, parameters and all")
      .metric("parameters", "1", "of the model")
      .metric("loss", "1", "of the last step")
      .metric("graph_nodes", "1", "kernels and copies of the recorded step")
      .oom_is_an_answer()
      .flops(train::flops_by_axes)
      .memory(train::predicted_bytes_by_axes)
      .runs(run_case);
}

SYSLAB_EXPERIMENT(benchmarking_script, describe);

}  // namespace
}  // namespace syslab::experiment_benchmarking_script
