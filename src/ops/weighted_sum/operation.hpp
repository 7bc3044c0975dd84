// The passes of the weighted sum as operations (contract/operation.hpp).
#pragma once

#include "contract/operation.hpp"
#include "ops/weighted_sum/weighted_sum.hpp"

namespace syslab::weighted_sum {

// Forward: inputs x, w; output y. Backward: inputs x, w, dy; outputs dx, dw. In half precision `naive` is set for the
// other CPU rungs.
Operation operation(const Problem& problem, Pass pass, const Rung& rung);

}  // namespace syslab::weighted_sum
