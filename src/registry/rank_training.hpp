// Experiments on training steps of several ranks: what is alike in them. A template, because the registry knows no
// training: it takes anything with the members it reads (parallel::RankTrainingCases).
//
//   Builder made = rank_training_experiment("fsdp", parallel::rank_training_cases(), models, "why no recorded graph");
//   made.closed_axis(…).preset("paper", …).memory(…).runs(…);
//   add_training_metrics(made);
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "registry/experiment.hpp"
#include "registry/ladder.hpp"
#include "registry/values.hpp"

namespace syslab::registry {

// Axes of the model, `batch` being the rows of all ranks and `model` by default these; presets smoke and laptop;
// implementations, of which recorded graphs are skipped for the reason `no_graphs`; metric "time". What it is about,
// further axes, presets and metrics, memory and the body are to be added.
template <typename Cases>
Builder rank_training_experiment(std::string id, const Cases& cases, const std::vector<std::string>& models,
                                 std::string no_graphs) {
  const auto on_cpu = [](const char* model, std::int64_t context) {
    return Preset{{"model", {text(model)}},
                  {"batch", {number(2)}},
                  {"context", {number(context)}},
                  {"device", {text("cpu")}},
                  {"impl", {text("host")}}};
  };
  Builder made = experiment(std::move(id));
  made.tags({"communication", "model"})
      .protocol("cs336")
      .axes(
          axes_of(cases.params, {{"model", texts(models)}, {"context", {number(128)}}, {"precision", {text("fp32")}}}))
      .world_sizes({number(2)})
      .preset("smoke", on_cpu("tiny", 16))
      .preset("laptop", on_cpu("cpu10m", 64))
      .implementations(implementations_of(cases.ladder))
      .expects(cases.expect)
      .refuses(cases.refusal)
      .skip_if(std::move(no_graphs),
               [](const Params&, std::string_view implementation) { return implementation == "graph"; })
      .metric("time", "s", "median of a whole step; of the slowest rank at each (rank -1)")
      .oom_is_an_answer();
  return made;
}

// Axis `wire` (parallel::wire_of).
inline void add_wire_axis(Builder& experiment) {
  experiment.closed_axis(
      "wire", {text("own")},
      "dtype in which gradients travel; own: as they lie. Others are rounded to once before, and once "
      "behind the sum",
      {text("bf16"), text("fp16")});
}

// Those that worker::emit_phases() emits, of steps that are timed phase by phase.
inline void add_phase_metrics(Builder& experiment) {
  experiment.metric("forward", "s", "of the step's phases; with the loss")
      .metric("backward", "s", "from there to the last gradient")
      .metric("update", "s", "from there to the end: what is scattered still, norm and optimizer");
}

// Those that worker::tell_training() emits.
inline void add_training_metrics(Builder& experiment) {
  experiment.metric("tokens_per_second", "1/s", "of all ranks, over this rank's median")
      .metric("parameters", "1", "of the model")
      .metric("loss", "1", "of the last step, over the rows of all ranks");
}

}  // namespace syslab::registry
