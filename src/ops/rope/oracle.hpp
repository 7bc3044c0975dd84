// The exact result, as far as double precision is exact, beside the error a correct kernel may make. Tensors of any
// dtype and strides; the tables are taken as they are given.
#pragma once

#include <vector>

#include "ops/rope/rope.hpp"

namespace syslab::rope {

// Row-major over (batch, heads, seq, head_dim).
struct Expected {
  std::vector<double> value, tolerance;
};

// `x` as in Args: of the backward pass the gradient that arrives. An element is a sum of two products.
Expected oracle(const Problem& problem, Direction direction, const ConstTensorView& x, const ConstTensorView& cos,
                const ConstTensorView& sin);

}  // namespace syslab::rope
