// A case that runs a data-parallel training step, optionally with the optimizer's state sharded among the ranks, with
// accounts of memory and communication: what both problems on that ask.
#pragma once

#include <string>
#include <vector>

#include "registry/registry.hpp"

namespace syslab {

// Axes: those of the model, `batch` being the rows of all ranks; `sharding`, by default these words of
// parallel::Sharding up to zero2. Presets, metrics and the body are there.
registry::Builder sharding_experiment(std::string id, const std::vector<std::string>& shardings,
                                      const std::vector<std::string>& models);

// Somebody's Python class may be checked in its place: by laws, on ranks of its own (--mine).
void take_classes(registry::Builder& experiment);

// Somebody's optimizer may be timed as sharding=optimizer (experiments/ddp/timed_class.hpp).
void time_classes(registry::Builder& experiment);

}  // namespace syslab
