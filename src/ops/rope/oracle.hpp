// The exact result (in double precision) and the error that a correct kernel may make. Tensors of any
// dtype and strides; the tables are used as given.
#pragma once

#include "contract/expected.hpp"
#include "ops/rope/rope.hpp"

namespace syslab::rope {

// `x` as in Args: for the backward pass the incoming gradient. An element is a sum of two products.
Expected oracle(const Problem& problem, Pass pass, const ConstTensorView& x, const ConstTensorView& cos,
                const ConstTensorView& sin);

}  // namespace syslab::rope
