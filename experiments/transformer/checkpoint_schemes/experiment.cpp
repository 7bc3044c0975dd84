// checkpoint_schemes: what arrangements of checkpoints over N equal blocks cost, counted on a toy stack; the question
// is in README.md in this folder. Nothing is timed.
#include <fmt/format.h>

#include <vector>

#include "model/toy_stack.hpp"
#include "registry/registry.hpp"
#include "registry/values.hpp"
#include "worker/cases/case_context.hpp"

namespace syslab::experiment_checkpoint_schemes {
namespace {

using registry::number;

void emit_check(worker::CaseContext& context, const char* name, double off, const std::string& message) {
  worker::CheckRecord check;
  check.name = name;
  check.cases_run = 1;
  check.seed = std::to_string(context.request().seed);
  check.worst_error = off;
  check.tolerance = 0;
  check.outcome = off == 0 ? Outcome::passed : Outcome::falsified;
  check.message = message;
  context.emit(check);
  if (off != 0) throw worker::CheckFailed(message);
}

// What is held during each block's pass, one after the other, for stacks small enough to draw. A deep stack has
// millions of passes.
constexpr std::int64_t kMostDrawn = 64;

void tell_course(worker::CaseContext& context, const std::vector<model::Held>& course) {
  worker::SampleRecord streams{.series = "held_streams", .unit = "1"},
      residuals{.series = "held_residuals", .unit = "1"};
  for (const model::Held& held : course) {
    streams.values.push_back(static_cast<double>(held.streams));
    residuals.values.push_back(static_cast<double>(held.residuals));
  }
  context.emit(streams);
  context.emit(residuals);
}

void run_case(worker::CaseContext& context) {
  const model::Scheme scheme = model::parse_scheme(context.params().text("scheme"));
  const std::int64_t blocks = context.params().integer("blocks");
  const std::uint64_t seed = context.request().seed;
  const bool drawn = blocks <= kMostDrawn;
  const model::ToyRun run =
      model::run_toy_stack(scheme, blocks, seed, drawn ? model::ToyCourse::kept : model::ToyCourse::dropped);
  const model::SchemeCost formula = model::cost_of(scheme, blocks);

  const std::vector<double> plain = model::run_toy_stack(model::Scheme::none, blocks, seed).gradients;
  std::int64_t others = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) others += run.gradients[i] == plain[i] ? 0 : 1;
  emit_check(context, "reference:gradients", static_cast<double>(others),
             fmt::format("{} of {} gradients have other bits than without checkpoints", others, plain.size()));
  const bool may_need_fewer = scheme == model::Scheme::binomial;
  const bool streams_fit = may_need_fewer ? run.cost.streams <= formula.streams : run.cost.streams == formula.streams;
  emit_check(context, "reference:formula",
             streams_fit && run.cost.forwards == formula.forwards && run.cost.residuals == formula.residuals ? 0 : 1,
             fmt::format("{} forward passes of a block, {} streams, {} residuals were counted; {}, {}, {} follow from "
                         "the formula",
                         run.cost.forwards, run.cost.streams, run.cost.residuals, formula.forwards, formula.streams,
                         formula.residuals));

  context.metric("block_forwards", "1", static_cast<double>(run.cost.forwards));
  context.metric("streams", "1", static_cast<double>(run.cost.streams));
  context.metric("residuals", "1", static_cast<double>(run.cost.residuals));
  if (drawn) tell_course(context, run.course);
}

registry::Experiment describe() {
  Values schemes;
  for (const model::Scheme scheme : model::kSchemes) schemes.emplace_back(std::string(to_string(scheme)));
  return registry::experiment("checkpoint_schemes")
      .title("Checkpointing schemes")
      .question(
          "How many forward passes of a block, kept streams and residuals does each arrangement of checkpoints over N "
          "equal blocks need, one after the other or nested?")
      .tags({"model"})
      .evidence({.problem = "gradient_checkpointing", .parts = {"a"}, .preset = "paper"})
      .closed_axis("scheme", schemes, "where streams are kept: see src/model/toy_stack.hpp")
      .axis("blocks", {number(8), number(16), number(32), number(64), number(128)}, "of the stack, 1 to 4096")
      .expects([](const Params& params) { model::require_toy_blocks(params.integer("blocks")); })
      .preset("smoke", {{"blocks", {number(8), number(32)}}})
      .preset("laptop", {})
      .preset("paper", {})
      .metric("block_forwards", "1", "forward passes of a block, the first of each among them")
      .metric("streams", "1", "most inputs of blocks that are kept at once, the stack's among them")
      .metric("residuals", "1", "most blocks whose activations are kept at once")
      .runs(run_case);
}

SYSLAB_EXPERIMENT(checkpoint_schemes, describe);

}  // namespace
}  // namespace syslab::experiment_checkpoint_schemes
