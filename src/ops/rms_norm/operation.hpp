// The passes of the normalisation as operations (contract/operation.hpp).
#pragma once

#include "contract/operation.hpp"
#include "ops/rms_norm/rms_norm.hpp"

namespace syslab::rms_norm {

// Forward: inputs x, delta if the problem adds, w; outputs h if it adds, y, rstd.
// Backward: inputs dy, h, w, rstd (made from h), dh if `add`, as in a block with a residual stream; outputs dx, dw.
// The rung's workspace is kept between calls. In half precision `naive` is set for the other CPU rungs.
Operation operation(const Problem& problem, Pass pass, const Rung& rung);

}  // namespace syslab::rms_norm
