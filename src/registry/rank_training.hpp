// Experiments on training steps of several ranks: what is alike in them.
//
//   Builder made = rank_training_experiment("fsdp", parallel::rank_training_cases(), models, "why no recorded graph");
//   made.closed_axis(…).preset("paper", …).memory(…).runs(…);
//   add_training_metrics(made);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "contract/rank_training.hpp"
#include "registry/experiment.hpp"

namespace syslab::registry {

// Axes of the model, `batch` being the rows of all ranks and `model` by default these; presets smoke and laptop;
// implementations, of which recorded graphs are skipped for the reason `no_graphs`; metric "time". What it is about,
// further axes, presets and metrics, memory and the body are to be added.
Builder rank_training_experiment(std::string id, const RankTrainingCases& cases, const std::vector<std::string>& models,
                                 std::string no_graphs);

// A step that a hand-out times, of its own largest model, with four rows a rank.
struct HandoutStep {
  std::string handout, model;
  std::int64_t context = 0;

  Preset grid() const;  // of the fused implementation
};
std::vector<HandoutStep> handout_steps();

// Axis `wire` (parallel::wire_of).
void add_wire_axis(Builder& experiment);

// Those that worker::emit_phases() emits, of steps that are timed phase by phase.
void add_phase_metrics(Builder& experiment);

// Those that worker::tell_training() emits.
void add_training_metrics(Builder& experiment);

}  // namespace syslab::registry
