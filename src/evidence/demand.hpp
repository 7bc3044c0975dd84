// What a hand-out's parts ask to be measured: the evidence that experiments declare (registry/evidence.hpp), as cases.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "evidence/parts.hpp"
#include "plan/plan.hpp"
#include "registry/registry.hpp"

namespace syslab::evidence {

struct Demand {
  const registry::Experiment* experiment = nullptr;
  registry::Need need = registry::Need::least;
  std::vector<std::size_t> parts;  // that it answers: positions among the hand-out's
  bool laws = false, in_small = false;
  plan::Plan here;      // its cases on this machine, those among them that it cannot run
  plan::Plan anywhere;  // those that can be run somewhere: what there may be in a store that was brought along
};

// All of a hand-out, in the registry's order. `base` is whose machine, devices, --mine and seed. Evidence in small is
// left out where the machine has a GPU. An experiment that poses a problem and declares no evidence has the coarse grid
// of its preset `paper` for the least, all of it for what is asked, and `laptop` in small.
// Those of `base.mine` join the experiments that they answer, beside ours and where ours run.
// Error(internal) where evidence names a problem or a part that the hand-out has not.
std::vector<Demand> demands_of(const registry::Registry& registry, const std::string& handout,
                               const std::vector<Part>& parts, const plan::Selection& base);

// Every law of every implementation once, whichever of the hand-out's experiments has it.
plan::Plan all_laws(const registry::Registry& registry, const std::string& handout, const plan::Selection& base);

// The ends and the middle of a list, in its order.
Values ends_and_middle(const Values& values);

}  // namespace syslab::evidence
