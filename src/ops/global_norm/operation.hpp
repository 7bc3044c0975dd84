// The global norm as an operation (contract/operation.hpp).
#pragma once

#include "contract/operation.hpp"
#include "ops/global_norm/global_norm.hpp"

namespace syslab::global_norm {

// Input g; outputs norm, factor.
Operation operation(const Problem& problem, double max_norm, const Rung& rung);

}  // namespace syslab::global_norm
