// The passes of the rotation as operations (ops/operation.hpp).
#pragma once

#include "ops/operation.hpp"
#include "ops/rope/rope.hpp"

namespace syslab::rope {

// Inputs x (of the backward pass the gradient that arrives), cos, sin, which `prepare` fills for theta 10,000; output
// y. All contiguous and apart. In half precision `naive` is set for other rungs on the CPU.
ops::Operation operation(const Problem& problem, Direction direction, const Rung& rung);

}  // namespace syslab::rope
