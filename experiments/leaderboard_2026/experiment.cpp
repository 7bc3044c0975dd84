// leaderboard_2026: a training step of the 8B model, as far as one GPU goes: what it holds, what fits, and slices of it
// that are measured; the question is in README.md beside this file.
#include <optional>
#include <string_view>

#include "model/parameters.hpp"
#include "registry/ladder.hpp"
#include "registry/registry.hpp"
#include "registry/values.hpp"
#include "train/measured_step.hpp"
#include "worker/measured_step_case.hpp"

namespace syslab {
namespace {

using registry::number;
using registry::text;

// Implementations that run nothing, by the way to run a step that they do the arithmetic of.
std::optional<std::string_view> predicted_rung(std::string_view implementation) {
  if (implementation == "predicted") return "fused";
  if (implementation == "predicted_eager") return "eager";
  return std::nullopt;
}

// The arithmetic is checked where it can be: parameters by the formula against those that the arena lays out.
void check_count(worker::CaseContext& context, const model::ModelConfig& config) {
  std::int64_t laid_out = 0;
  const model::ParameterLayout layout(config);
  for (const model::ParameterInfo& one : layout.infos()) laid_out += one.shape.elements();
  worker::CheckRecord check;
  check.name = "reference:parameters";
  check.cases_run = 1;
  check.worst_error = static_cast<double>(std::abs(laid_out - model::parameter_count(config)));
  check.tolerance = 0;
  check.outcome = *check.worst_error == 0 ? "passed" : "falsified";
  check.message = std::to_string(laid_out) + " parameters are laid out, " +
                  std::to_string(model::parameter_count(config)) + " follow from the sizes";
  context.emit(check);
  if (check.outcome != "passed") throw worker::CheckFailed(check.message);
}

void predict(worker::CaseContext& context, std::string_view rung) {
  const train::WorkloadOptions options = train::workload_from(context.params(), train::find_rung(rung));
  check_count(context, options.config);
  const train::StepBytes bytes = train::predicted_parts(options);
  context.metric("parameters", "1", static_cast<double>(model::parameter_count(options.config)));
  context.metric("weights_bytes", "B", bytes.weights);
  context.metric("copy_bytes", "B", bytes.copy);
  context.metric("gradient_bytes", "B", bytes.gradients);
  context.metric("moment_bytes", "B", bytes.moments);
  context.metric("kept_bytes", "B", bytes.kept);
  context.metric("head_bytes", "B", bytes.head);
  context.metric("total_bytes", "B", bytes.total());
  context.metric("step_flops", "1",
                 model::forward_flops(options.config, options.batch, options.seq, true) +
                     model::backward_flops(options.config, options.batch, options.seq, true));
}

void run_case(worker::CaseContext& context) {
  if (const auto predicted = predicted_rung(context.request().implementation)) return predict(context, *predicted);
  const train::Rung& rung = train::find_rung(context.request().implementation);
  worker::run_step_case(context,
                        worker::step_case_of(train::measured_step(context.params(), rung, context.request().seed)));
}

double bytes_of(const Params& params, std::string_view implementation) {
  // Arithmetic takes no memory, but sizes that cannot be are told before it begins.
  const auto predicted = predicted_rung(implementation);
  const train::Rung& rung = train::find_rung(predicted.value_or(implementation));
  const double bytes = train::predicted_bytes(train::workload_from(params, rung));
  return predicted ? 0 : bytes;
}

registry::Experiment describe() {
  const registry::Values precisions{text("fp32"), text("bf16_amp"), text("bf16_fused")};
  return registry::experiment("leaderboard_2026")
      .title("The 8B training step of 2026, on one GPU")
      .question(
          "What does a training step of the 8B model (vocabulary 151,936, context 32,768, batch 2) hold, on what does "
          "it fit, how fast could it be, and how long do slices of it take that fit on one GPU?")
      .analogue(
          "the leaderboard's step runs on two GPUs; here is what one can hold and measure, and arithmetic that says so")
      .problem("2026", "leaderboard", 10)
      .tags({"model"})
      .protocol("cs336")
      .axes(registry::axes_of(train::param_list(), {{"model", {text("8B")}},
                                                    {"batch", {number(2)}},
                                                    {"context", {number(32768)}},
                                                    {"precision", {text("bf16_fused")}}}))
      .preset("smoke", {{"model", {text("tiny")}},
                        {"batch", {number(2)}},
                        {"context", {number(32)}},
                        {"precision", {text("fp32")}},
                        {"device", {text("cpu"), text("cuda")}},
                        {"impl", {text("predicted"), text("host"), text("graph")}}})
      .preset("laptop", {{"batch", {number(1), number(2)}},
                         {"precision", precisions},
                         {"device", {text("cpu")}},
                         {"impl", {text("predicted"), text("predicted_eager")}}})
      .preset("paper", {{"batch", {number(1), number(2)}},
                        {"precision", precisions},
                        {"device", {text("cpu"), text("cuda")}},
                        {"impl", {text("predicted"), text("predicted_eager"), text("graph")}}})
      .preset("slices", {{"batch", {number(1)}},
                         {"context", {number(8192)}},
                         {"layers", {number(1), number(2), number(4)}},
                         {"impl", {text("fused"), text("graph")}}})
      .implementation({.name = "predicted",
                       .teaches = "arithmetic: what a step of `fused` holds, and its operations; nothing is run"})
      .implementation({.name = "predicted_eager", .teaches = "the same where attention keeps its matrices of scores"})
      .implementations(registry::implementations_of(train::ladder()))
      .refuses([](const Params& params, std::string_view implementation) {
        return predicted_rung(implementation) ? std::nullopt : train::refusal_by_axes(params, implementation);
      })
      .metric("time", "s", "median of the measured steps")
      .metric("total_bytes", "B",
              "predicted: all that a step holds at once; weights, copy, gradient, moment, kept and head_bytes are its "
              "parts")
      .metric("step_flops", "1",
              "predicted: matrix products, forward and backward, of which a causal mask spares half of attention's")
      .metric("peak_bytes", "B", "measured: most in use during a step, parameters and all")
      .metric("parameters", "1", "of the model")
      .oom_is_an_answer()
      .flops([](const Params& params) { return train::flops(train::workload_from(params, train::ladder().back())); })
      .memory(bytes_of)
      .runs(run_case);
}

const registry::Experiment kLeaderboard2026 = describe();
SYSLAB_EXPERIMENT(kLeaderboard2026);

}  // namespace
}  // namespace syslab
