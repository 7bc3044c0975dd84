// The global norm as an operation (ops/operation.hpp).
#pragma once

#include "ops/global_norm/global_norm.hpp"
#include "ops/operation.hpp"

namespace syslab::global_norm {

// Input g; outputs norm, factor.
ops::Operation operation(const Problem& problem, double max_norm, const Rung& rung);

}  // namespace syslab::global_norm
