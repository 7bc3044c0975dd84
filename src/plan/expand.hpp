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

// Names of the implementations to run, ours in declared order, then --mine. `mine_alone`: without --impl, only --mine
// when there is one.
std::vector<std::string> implementations(const registry::Experiment& experiment, const Selection& selection,
                                         bool mine_alone);

}  // namespace syslab::plan
