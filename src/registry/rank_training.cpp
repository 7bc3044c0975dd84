#include "registry/rank_training.hpp"

#include <utility>

#include "registry/ladder.hpp"
#include "registry/values.hpp"

namespace syslab::registry {

Builder rank_training_experiment(std::string id, const RankTrainingCases& cases, const std::vector<std::string>& models,
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

Preset HandoutStep::grid() const {
  return {{"model", {text(model)}}, {"batch", {number(8)}}, {"context", {number(context)}}, {"impl", {text("fused")}}};
}

std::vector<HandoutStep> handout_steps() { return {{"2025", "xl25", 128}, {"2026", "xl26", 512}}; }

void add_wire_axis(Builder& experiment) {
  experiment.closed_axis(
      "wire", {text("own")},
      "dtype in which gradients travel; own: as they lie. Others are rounded to once before, and once "
      "behind the sum",
      {text("bf16"), text("fp16")});
}

void add_phase_metrics(Builder& experiment) {
  experiment.metric("forward", "s", "of the step's phases; with the loss")
      .metric("backward", "s", "from there to the last gradient")
      .metric("update", "s", "from there to the end: what is scattered still, norm and optimizer");
}

void add_training_metrics(Builder& experiment) {
  experiment.metric("tokens_per_second", "1/s", "of all ranks, over this rank's median")
      .metric("parameters", "1", "of the model")
      .metric("loss", "1", "of the last step, over the rows of all ranks");
}

}  // namespace syslab::registry
