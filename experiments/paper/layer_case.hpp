// A case that is one gated layer under one layout, on paper: what the four experiments that calculate it have in
// common. Nothing is timed: the answer is arithmetic, counted twice.
#pragma once

#include <string>

#include "paper/layer_answers.hpp"
#include "registry/registry.hpp"

namespace syslab {

// Axes: those of the layer and the machine, and `ranks`, or where two strategies meet `data_ranks` and `tensor_ranks`.
// Presets, metrics and the body are there; a title, a question and a problem are to be added.
registry::Builder layer_experiment(std::string id, parallel::Layout layout);

}  // namespace syslab
