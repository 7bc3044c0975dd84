// `--command './bench {n}' -a n=1k:16k`: the selection of somebody's programs, whose axes the command line gives.
#pragma once

#include <string_view>

#include "core/quantity.hpp"
#include "plan/plan.hpp"
#include "plan/sides.hpp"
#include "session/options.hpp"
#include "worker/cases/command_params.hpp"

namespace syslab::cli {

using worker::kCommandExperiment;

// Adds each --command to the implementations of `selection` and gives the experiment, in a registry of the selection's
// own, the axes that -a has, or a side of a comparison; the output of one that is called `reference` is what the
// others' must equal. Nothing where there is no command. Error(usage) where a place in a command has no axis, or an
// axis no place.
void select_command(const SelectionOptions& options, plan::Selection& selection, const plan::Sides& sides = {});

// What the times of a case are of: of a command that prints a rate that rate, of all else seconds.
Quantity quantity_of(std::string_view experiment, const Params& params);
inline Quantity quantity_of(const plan::PlannedCase& planned) {
  return quantity_of(planned.experiment->id, planned.params);
}
// Of a stored case, whose parameters are text that anybody may have written: text that is no pattern is of seconds. The
// unit is safe to print in one line.
Quantity quantity_of_stored(std::string_view experiment, const std::string& params);

}  // namespace syslab::cli
