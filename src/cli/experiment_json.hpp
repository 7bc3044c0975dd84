// An experiment as JSON: what `list` and `describe` print under --json.
#pragma once

#include "core/text/json.hpp"
#include "registry/experiment.hpp"

namespace syslab::cli {

Json experiment_json(const registry::Experiment& experiment);

}  // namespace syslab::cli
