// The exact result, as far as double precision is exact, beside the error a correct kernel may make: what `check`
// compares with. Tensors of any dtype and any row stride.
#pragma once

#include <vector>

#include "ops/weighted_sum/weighted_sum.hpp"

namespace syslab::weighted_sum {

// One output, row-major over its shape. The tolerance of an element is sum_of_products_bound() of its sum.
struct Expected {
  std::vector<double> value, tolerance;
};

struct BackwardOracle {
  Expected dx, dw;
};

Expected forward_oracle(const Problem& problem, const ConstTensorView& x, const ConstTensorView& w);
BackwardOracle backward_oracle(const Problem& problem, const ConstTensorView& x, const ConstTensorView& w,
                               const ConstTensorView& dy);

}  // namespace syslab::weighted_sum
