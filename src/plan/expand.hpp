// The grid of one experiment: which values each axis takes, which implementations run.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace syslab::plan {

// Experiments that the patterns and the hand-out select. Error(usage) when none is left.
std::vector<const registry::Experiment*> selected_experiments(const registry::Registry& registry,
                                                              const Selection& selection);

// Throws Error(usage) if an assignment names an axis, or --preset a preset, or --impl an implementation, that none of
// these experiments has. What only some of them have applies to those.
void check_names(const std::vector<const registry::Experiment*>& experiments, const Selection& selection);

// Every point of the experiment's grid: declared values, replaced by the preset's, replaced by the assignments'. Axes
// declared later vary faster. Empty when the selection asks for a preset that this experiment lacks.
std::vector<Params> grid(const registry::Experiment& experiment, const Selection& selection);

// How many ranks its cases have: declared, replaced by the preset's, replaced by the assignments'. 1 for an experiment
// that takes no more.
std::vector<int> world_sizes(const registry::Experiment& experiment, const Selection& selection);

// One implementation of a case, and where it runs.
struct Chosen {
  std::string name;
  DeviceKind device = DeviceKind::cpu;
};

// The implementations to run, ours in declared order, then --mine. `mine_alone`: without --impl, only --mine when there
// is one.
//
// Of ours, those of the devices that the selection names; where it names none, those that --impl spells out, wherever
// they run, and of the others those of the preset's devices, else of the GPU where the machine has one and any of them
// runs there, else of the CPU. Never nothing for want of a device: cases of the wrong one are told as skipped.
std::vector<Chosen> implementations(const registry::Experiment& experiment, const Selection& selection,
                                    bool mine_alone);

}  // namespace syslab::plan
