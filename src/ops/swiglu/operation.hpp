// The passes of the gate as operations (contract/operation.hpp).
#pragma once

#include "contract/operation.hpp"
#include "ops/swiglu/swiglu.hpp"

namespace syslab::swiglu {

// Forward: inputs gate, up; output out. Backward: inputs gate, up, dout; outputs dgate, dup. In half precision `naive`
// is set for the other CPU rungs.
Operation operation(const Problem& problem, Pass pass, const Rung& rung);

}  // namespace syslab::swiglu
