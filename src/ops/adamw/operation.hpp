// A step of AdamW as an operation (contract/operation.hpp).
#pragma once

#include "contract/operation.hpp"
#include "ops/adamw/adamw.hpp"

namespace syslab::adamw {

// Inputs p, m, v, g and scalars (prepared for step `t`); v is prepared, uniform in [0, 1). Outputs new_p, new_m, new_v
// and, with copy_dtype, copy: a step that reads one state and writes another, the same bytes as in place. For an
// operation-by-operation rung the state is copied first, and the copy is timed too. Unsplit weights only.
Operation operation(const Problem& problem, const Options& options, std::int64_t t, const Rung& rung);

}  // namespace syslab::adamw
