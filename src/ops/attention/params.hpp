// Converts the axes of a case to a problem: shared by all attention experiments.
#pragma once

#include <vector>

#include "contract/axis.hpp"
#include "core/value.hpp"
#include "ops/attention/attention.hpp"

namespace syslab::attention {

// The parameters that problem_from reads, with their usual values; registry::axes_of() turns them into axes.
std::vector<Axis> param_list();

// Axes: batch, heads, heads_kv (0: as heads), seq, seq_k (0: as seq), head_dim, dtype, causal, align ("top_left",
// "bottom_right"; read only when causal). Validated: Error(usage) names the invalid field.
Problem problem_from(const Params& params);

}  // namespace syslab::attention
