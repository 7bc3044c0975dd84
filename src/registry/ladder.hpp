// An operator's ladder and parameters as the registry shows them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "contract/axis.hpp"
#include "contract/rung.hpp"
#include "registry/experiment.hpp"

namespace syslab::registry {

// In the ladder's order.
std::vector<Implementation> implementations_of(const RungInfos& ladder);

// What a run stores of an implementation (table rung_fact): what its fields say, then its `facts`.
std::vector<RungFact> facts_of(const Implementation& one);

// The names of a ladder's rungs, for a preset's "impl", but for `without` and the oracles: a preset that
// lists them by hand forgets the next one.
Values names_of(const RungInfos& ladder, const std::vector<std::string>& without = {});

// `axes` with other values by default, by name, `instead`; a closed axis goes on taking those that they stand for.
// Error(internal) if it names what is not in the list.
std::vector<Axis> axes_of(std::vector<Axis> axes, std::map<std::string, Values> instead = {});

}  // namespace syslab::registry
