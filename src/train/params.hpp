// From the axes of a case to a workload: the words that experiments on the model share.
#pragma once

#include <string_view>
#include <vector>

#include "contract/axis.hpp"
#include "core/value.hpp"
#include "train/ladder.hpp"
#include "train/workload.hpp"

namespace syslab::train {

// The axes that workload_from reads, with their usual values: registry::axes_of() makes axes of them.
std::vector<Axis> param_list();

// Axes: model (and its sizes one by one, where they are to be others), batch, context, precision, mode. Error(usage)
// for what cannot be.
WorkloadOptions workload_from(const Params& params, const Rung& rung);

// Of matrix products, as the baseline computes them (no credit for what a causal mask spares).
double flops(const WorkloadOptions& options);
double flops_by_axes(const Params& params);  // workload_from() in front
// What a step holds at its highest, in bytes, as far as its mode goes: train/peak_memory.hpp, in parts.
struct StepBytes {
  double weights = 0, copy = 0, gradients = 0, moments = 0;
  double kept = 0;  // by blocks for the backward pass, with what that makes again
  double head = 0;  // the rest: logits or workspaces and gradients on their way, whichever are there then
  double total() const { return weights + copy + gradients + moments + kept + head; }
};
StepBytes predicted_parts(const WorkloadOptions& options);
double predicted_bytes(const WorkloadOptions& options);
double predicted_bytes_by_axes(const Params& params, std::string_view rung);

}  // namespace syslab::train
