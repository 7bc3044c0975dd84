// The passes of the rotation as operations (contract/operation.hpp).
#pragma once

#include "contract/operation.hpp"
#include "ops/rope/rope.hpp"

namespace syslab::rope {

// Inputs x (for the backward pass the incoming gradient), cos, sin, which `prepare` fills for theta 10,000; output y.
// All contiguous, without overlap. In half precision `naive` is set for the other CPU rungs.
Operation operation(const Problem& problem, Pass pass, const Rung& rung);

}  // namespace syslab::rope
