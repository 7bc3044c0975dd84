// Casts and sums as operations (ops/operation.hpp).
#pragma once

#include "ops/elementwise/elementwise.hpp"
#include "ops/operation.hpp"

namespace syslab::elementwise {

// Input x, output y.
ops::Operation cast_operation(const Problem& problem, DType from, DType to, const Rung& rung);
// Inputs a, b; output y of promoted(a, b).
ops::Operation add_operation(const Problem& problem, DType a, DType b, const Rung& rung);

}  // namespace syslab::elementwise
