// The passes of the gate as operations (ops/operation.hpp).
#pragma once

#include "ops/operation.hpp"
#include "ops/swiglu/swiglu.hpp"

namespace syslab::swiglu {

// Forward: inputs gate, up; output out. Backward: inputs gate, up, dout; outputs dgate, dup. In half precision `naive`
// is set for other rungs on the CPU.
ops::Operation operation(const Problem& problem, Direction direction, const Rung& rung);

}  // namespace syslab::swiglu
