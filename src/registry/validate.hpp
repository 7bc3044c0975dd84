// What makes an experiment whole. A violation is a mistake in experiments/, told before anything runs.
#pragma once

#include "registry/experiment.hpp"

namespace syslab::registry {

// Throws Error(internal) naming the experiment and the fault: a malformed or repeated name, an axis without values or
// with values of mixed types or with a reserved name, a preset that names no axis, value or implementation, more than
// one reference, no function to run.
void validate(const Experiment& experiment);

// Calls every skip rule on the first point of the grid; Error(internal) when one asks for an axis that does not exist.
void probe_skip_rules(const Experiment& experiment);

}  // namespace syslab::registry
