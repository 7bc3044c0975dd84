// The passes of the weighted sum as operations (ops/operation.hpp).
#pragma once

#include "ops/operation.hpp"
#include "ops/weighted_sum/weighted_sum.hpp"

namespace syslab::weighted_sum {

// Forward: inputs x, w; output y. Backward: inputs x, w, dy; outputs dx, dw. In half precision `naive` is set for other
// rungs on the CPU.
ops::Operation operation(const Problem& problem, Direction direction, const Rung& rung);

}  // namespace syslab::weighted_sum
