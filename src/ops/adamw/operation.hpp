// A step of AdamW as an operation (ops/operation.hpp).
#pragma once

#include "ops/adamw/adamw.hpp"
#include "ops/operation.hpp"

namespace syslab::adamw {

// Inputs p, m, v, g and scalars (prepared: of step `t`); v is prepared, uniform between 0 and 1. Outputs new_p, new_m,
// new_v and, with copy_dtype, copy: a step that reads one state and writes another, the same bytes as in place. For a
// rung that goes operation by operation the state is copied before, which is timed with it. Of whole weights.
ops::Operation operation(const Problem& problem, const Options& options, std::int64_t t, const Rung& rung);

}  // namespace syslab::adamw
