// Sums as operations (contract/operation.hpp).
#pragma once

#include "contract/operation.hpp"
#include "ops/elementwise/elementwise.hpp"

namespace syslab::elementwise {

// Inputs a, b; output y of promoted(a, b).
Operation add_operation(const Problem& problem, DType a, DType b, const Rung& rung);

}  // namespace syslab::elementwise
