// A case that is a training step with all of its state divided among the ranks, certified and checked on every rank and
// timed with all in step: what the experiments on full sharding have in common.
#pragma once

#include <string>
#include <vector>

#include "registry/registry.hpp"

namespace syslab {

// Axes: those of the model, `batch` being the rows of all ranks; `model`, by default these; `granularity`, what is
// gathered together. Presets, metrics and the body are there; a title, a question and problems are to be added.
registry::Builder fsdp_experiment(std::string id, const std::vector<std::string>& models);

}  // namespace syslab
