// mixed_precision_accumulation: 0.01 added a thousand times in several precisions; the question is in README.md in this
// folder. Nothing is timed: the answer is bits.
#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"
#include "device/cuda/launch.hpp"
#include "ops/accumulation/accumulation.hpp"
#include "registry/registry.hpp"
#include "worker/cases/case_context.hpp"

namespace syslab::experiment_mixed_precision_accumulation {
namespace {

using accumulation::Problem;
using accumulation::Result;
using accumulation::Rung;

Problem problem_from(const Params& params) {
  return {.how = accumulation::find_case(params.text("case")), .count = params.integer("additions")};
}

// The same sum by another rung must have the same bits: the reference computes in integers, so that a mistake in one is
// none in the other.
worker::CheckRecord compare(const Problem& problem, const Result& found, const Rung& other) {
  const Result expected = other.sum(problem);
  worker::CheckRecord check;
  check.name = other.name + ":bits";
  check.outcome = found.bits == expected.bits ? Outcome::passed : Outcome::falsified;
  check.cases_run = 1;
  check.worst_error = std::abs(found.value - expected.value);
  check.tolerance = 0;
  check.message = "found " + bits_text(found, problem.how.accumulator) + ", '" + other.name + "' gives " +
                  bits_text(expected, problem.how.accumulator);
  return check;
}

bool runs_here(const Rung& rung) {
  if (!rung.unavailable.empty()) return false;
  return rung.device == device::Kind::cpu || device::gpu_count() > 0;
}

void run_case(worker::CaseContext& context) {
  const Problem problem = problem_from(context.params());
  const Rung& rung = accumulation::find_rung(context.request().implementation);
  const Result found = rung.sum(problem);
  for (const Rung& other : accumulation::ladder()) {
    if (other.name == rung.name || !runs_here(other)) continue;
    const worker::CheckRecord check = compare(problem, found, other);
    context.emit(check);
    if (check.outcome != Outcome::passed) throw worker::CheckFailed(check.message);
  }
  context.metric("value", "1", found.value);
  context.metric("error", "1", found.value - problem.exact());
  context.metric("addend", "1", found.addend);
  context.metric("last_change", "1", static_cast<double>(found.last_change));
  const Json facts{{"bits", bits_text(found, problem.how.accumulator)},
                   {"accumulator", to_string(problem.how.accumulator)},
                   {"addend", to_string(problem.how.addend)},
                   {"says", problem.how.says}};
  context.emit(worker::FactRecord{json_text(facts)});
}

Values case_names() {
  Values names;
  for (const accumulation::Case& one : accumulation::cases()) names.emplace_back(one.name);
  return names;
}

registry::Experiment describe() {
  // The point is that the host and a GPU give the same bits.
  const Values everywhere{std::string("cpu"), std::string("cuda")};
  registry::Builder builder = registry::experiment("mixed_precision_accumulation");
  builder.title("Mixed-precision accumulation")
      .question(
          "Which sums come out near 10, and where does the rest go: into the addend's rounding, once, or into the "
          "sum's, a thousand times?")
      .problem("2025", "mixed_precision_accumulation", 1)
      .problem("2026", "mixed_precision_accumulation", 1)
      .evidence({})
      .evidence({.need = registry::Need::nice, .preset = "paper"})
      .tags({"precision"})
      .closed_axis("case", case_names(), "accumulator and addend; bf16 is ours, the others are the hand-out's four")
      .axis("additions", {std::int64_t{1000}}, "how often 0.01 is added")
      .preset("smoke", {{"additions", {std::int64_t{1000}}}, {"device", everywhere}})
      .preset("laptop", {{"additions", {std::int64_t{1000}, std::int64_t{10000}}}, {"device", everywhere}})
      .preset("paper", {{"additions", {std::int64_t{1000}}}, {"device", everywhere}})
      .metric("value", "1", "the sum, exact")
      .metric("error", "1", "the sum less additions/100")
      .metric("addend", "1", "0.01 after rounding to the addend's type")
      .metric("last_change", "1", "the last addition that changed the sum: below `additions`, it stalled")
      .runs(run_case);
  for (const Rung& rung : accumulation::ladder()) {
    builder.implementation({.name = rung.name,
                            .teaches = rung.teaches,
                            .role = rung.role,
                            .unavailable = rung.unavailable,
                            .device = rung.device,
                            .minimum_sm = rung.minimum_sm});
  }
  return builder;
}

SYSLAB_EXPERIMENT(mixed_precision_accumulation, describe);

}  // namespace
}  // namespace syslab::experiment_mixed_precision_accumulation
