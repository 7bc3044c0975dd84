// leaderboard_2026: a training step of the 8B model, whole on several GPUs; and on one GPU as far as possible: what it
// holds, what fits, and slices of it that are measured. The question is in README.md in this folder.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <string_view>

#include "experiments/sharding/fsdp_case.hpp"
#include "model/parameters.hpp"
#include "registry/ladder.hpp"
#include "registry/registry.hpp"
#include "registry/values.hpp"
#include "train/measured_step.hpp"
#include "trials/rank_training.hpp"
#include "worker/cases/step_case.hpp"

namespace syslab::experiment_leaderboard_2026 {
namespace {

using registry::Need;
using registry::number;
using registry::text;

// Implementations that run nothing, by the way to run a step that they do the arithmetic of.
std::optional<std::string_view> predicted_rung(std::string_view implementation) {
  if (implementation == "predicted") return "fused";
  if (implementation == "predicted_eager") return "eager";
  return std::nullopt;
}

// Those that take the step fully sharded, under names of their own: `fsdp` and, for ranks of the CPU, `fsdp_host`.
std::array<train::Rung, 2> sharded_ladder() {
  const auto sharded = [](const char* name, const char* teaches, const char* rung) {
    train::Rung made = train::find_rung(rung);
    made.name = name;
    made.teaches = teaches;
    made.role = Role::sharded;
    return made;
  };
  return {sharded("fsdp", "`fused`, all of its state divided among the ranks and gathered by blocks", "fused"),
          sharded("fsdp_host", "`host`, alike, on ranks of the CPU", "host")};
}

std::optional<train::Rung> sharded_rung(std::string_view implementation) {
  for (train::Rung& one : sharded_ladder()) {
    if (one.name == implementation) return std::move(one);
  }
  return std::nullopt;
}

// The fewest blocks that are run again where a rank of two has a GPU of 141 GB: half of the 34, as the forecast of
// memory has it. With no other length of a segment are there fewer, but with those that keep more.
constexpr double kSegment = 17;

model::Recompute recompute_of(const Params& params) { return model::segments_of(params.number("segment")); }

// Operations of a step of all ranks, by which the floors are: of products alone, of which a causal mask spares half of
// attention's.
void tell_floors(worker::CaseContext& context, const train::WorkloadOptions& all, model::Recompute recompute) {
  const model::ModelConfig& config = all.config;
  const double forward = model::forward_flops(config, all.batch, all.seq, true);
  const double attention = model::forward_flops(config, all.batch, all.seq, false) - forward;
  const double head = 2 * static_cast<double>(all.batch * all.seq) * static_cast<double>(config.d_model * config.vocab);
  const double least = forward + model::backward_flops(config, all.batch, all.seq, true) + attention / 2;
  const auto halves = static_cast<double>(2 * config.layers);
  const double again = static_cast<double>(half_blocks_forward(recompute, config.layers)) / halves - 1;
  context.metric("floor_flops", "1", least);
  context.metric("segment_flops", "1", least + again * (forward - head));
  context.metric("recompute_flops", "1", least + attention + forward - head);
}

void run_sharded(worker::CaseContext& context, const train::Rung& rung) {
  const model::Recompute recompute = recompute_of(context.params());
  run_fsdp_case(context, {.rung = rung, .recompute = recompute});
  if (!context.is_paired()) tell_floors(context, train::workload_from(context.params(), rung), recompute);
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
  check.outcome = *check.worst_error == 0 ? Outcome::passed : Outcome::falsified;
  check.message = std::to_string(laid_out) + " parameters are laid out, " +
                  std::to_string(model::parameter_count(config)) + " follow from the sizes";
  context.emit(check);
  if (check.outcome != Outcome::passed) throw worker::CheckFailed(check.message);
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
  if (const auto sharded = sharded_rung(context.request().implementation)) return run_sharded(context, *sharded);
  const train::Rung& rung = train::find_rung(context.request().implementation);
  worker::run_step_case(context,
                        worker::step_case_of(train::measured_step(context.params(), rung, context.request().seed)));
}

// Segments that cannot be, and rows that ranks cannot share.
void expect(const Params& params) {
  recompute_of(params);
  parallel::rank_training_cases().expect(params);
}

std::optional<std::string> refusal(const Params& params, std::string_view implementation) {
  if (const auto sharded = sharded_rung(implementation)) {
    if (auto why = parallel::refusal_of_backend(params, sharded->name, sharded->device)) return why;
    return parallel::rank_training_cases().refusal(params, sharded->device == device::Kind::cpu ? "host" : "fused");
  }
  if (params.integer("world_size") > 1) {
    return fmt::format("{} is one process's work; fsdp divides the step among ranks of GPUs, fsdp_host among the CPU's",
                       implementation);
  }
  if (params.text("backend") != "auto") {
    return fmt::format("{} is one process's work, and no backend carries anything for it: backend=auto",
                       implementation);
  }
  return predicted_rung(implementation) ? std::nullopt : train::refusal_by_axes(params, implementation);
}

// Such a segment would be the whole model, which is kept whole: the case of segment=0 under another name.
bool is_beyond_model(const Params& params, std::string_view implementation) {
  const auto sharded = sharded_rung(implementation);
  return sharded &&
         params.number("segment") > static_cast<double>(train::workload_from(params, *sharded).config.layers);
}

double bytes_of(const Params& params, std::string_view implementation) {
  if (const auto sharded = sharded_rung(implementation)) {
    return fsdp_case_memory(params, {.rung = *sharded, .recompute = recompute_of(params)});
  }
  // Arithmetic takes no memory, but impossible sizes are reported before it begins.
  const auto predicted = predicted_rung(implementation);
  const train::Rung& rung = train::find_rung(predicted.value_or(implementation));
  const double bytes = train::predicted_bytes(train::workload_from(params, rung));
  return predicted ? 0 : bytes;
}

std::vector<registry::Metric> metrics() {
  return {{"time", "s", "median of the measured steps; of several ranks, of the slowest at each (rank -1)"},
          {"total_bytes", "B",
           "predicted: all that a step holds at once; weights, copy, gradient, moment, kept and head_bytes are its "
           "parts"},
          {"step_flops", "1",
           "predicted: matrix products, forward and backward, of which a causal mask spares half of attention's"},
          {"floor_flops", "1", "fsdp: products of all ranks, the scores that the backward pass makes again among them"},
          {"segment_flops", "1", "the same with the blocks that are run again"},
          {"recompute_flops", "1", "and with all of them, attention's backward pass in two, its scores made twice"}};
}

std::vector<registry::Evidence> evidence() {
  return {{.preset = "two_gpus", .grid = {{"segment", {kSegment}}}},
          {.need = Need::asked, .preset = "two_gpus"},
          {.need = Need::nice, .preset = "slices"},
          {.need = Need::nice, .preset = "paper"},
          {.preset = "laptop", .in_small = true}};
}

std::vector<registry::Implementation> predictions() {
  return {{.name = "predicted",
           .teaches = "arithmetic: what a step of `fused` holds, and its operations; nothing is run",
           .role = Role::predicted},
          {.name = "predicted_eager",
           .teaches = "the same where attention keeps its matrices of scores",
           .role = Role::predicted}};
}

registry::Experiment describe() {
  const Values precisions{text("fp32"), text("bf16_amp"), text("bf16_fused")};
  registry::Builder made = registry::experiment("leaderboard_2026");
  made.title("Leaderboard 2026: training step of an 8B model")
      .question(
          "How long does a training step of the 8B model (vocabulary 151,936, context 32,768, batch 2) take on two "
          "GPUs and what does it hold; and on one GPU, on what would it fit, and how long do slices of it take?")
      .analogue("the leaderboard's GPUs are two B200; times of others are not to be ranked beside theirs")
      .problem("2026", "leaderboard", 10)
      .all_evidence(evidence())
      .tags({"model"})
      .protocol("leaderboard_2026")
      .axes(registry::axes_of(parallel::rank_training_cases().params, {{"model", {text("8B")}},
                                                                       {"batch", {number(2)}},
                                                                       {"context", {number(32768)}},
                                                                       {"precision", {text("bf16_fused")}}}))
      .axis("segment", {kSegment},
            "blocks of a segment of which fsdp keeps the first stream alone and runs it again, the last segment but "
            "for; 0: all is kept, as others do")
      .world_sizes({number(1)})
      .preset("smoke", {{"model", {text("tiny")}},
                        {"batch", {number(2)}},
                        {"context", {number(32)}},
                        {"precision", {text("fp32")}},
                        {"segment", {1.0}},
                        {"world_size", {number(1), number(2)}},
                        {"device", {text("cpu"), text("cuda")}},
                        {"impl", {text("predicted"), text("host"), text("graph"), text("fsdp_host")}}})
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
      .preset("two_gpus", {{"segment", {kSegment, 1.0}}, {"world_size", {number(2)}}, {"impl", {text("fsdp")}}})
      .implementations(predictions())
      .implementations(registry::implementations_of(train::ladder()))
      .implementations(registry::implementations_of(sharded_ladder()))
      .expects(expect)
      .refuses(refusal)
      .skip_if("a segment of more blocks than the model has keeps all of them: segment=0 measures that",
               is_beyond_model)
      .metrics(metrics())
      .oom_is_an_answer()
      .flops(train::flops_by_axes)
      .memory(bytes_of)
      .runs(run_case);
  add_fsdp_metrics(made);
  return made;
}

SYSLAB_EXPERIMENT(leaderboard_2026, describe);

}  // namespace
}  // namespace syslab::experiment_leaderboard_2026
