// From the axes of a case to a problem: the words that attention experiments share.
#pragma once

#include <vector>

#include "core/value.hpp"
#include "ops/attention/attention.hpp"
#include "ops/operation.hpp"

namespace syslab::attention {

// The axes that problem_from reads, with their usual values: registry::axes_of() makes axes of them.
std::vector<ops::ParamInfo> param_list();

// Axes: batch, heads, heads_kv (0: as heads), seq, seq_k (0: as seq), head_dim, dtype, causal, align ("top_left",
// "bottom_right"; read only when causal). Validated: Error(usage) names the field that is impossible.
Problem problem_from(const Params& params);

}  // namespace syslab::attention
