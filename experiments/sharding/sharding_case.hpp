// A case that is a data-parallel training step whose optimizer's state may be divided among the ranks, with an account
// of memory and of what travels: what both problems on that ask.
#pragma once

#include <string>
#include <vector>

#include "registry/registry.hpp"

namespace syslab {

// Axes: those of the model, `batch` being the rows of all ranks; `sharding`, by default these words of
// parallel::Sharding up to zero2. Presets, metrics and the body are there.
registry::Builder sharding_experiment(std::string id, const std::vector<std::string>& shardings,
                                      const std::vector<std::string>& models);

}  // namespace syslab
