// The exact result (in double precision) and the error that a correct kernel may make, for `check`. Tensors of any
// dtype and any row stride.
#pragma once

#include "contract/expected.hpp"
#include "ops/weighted_sum/weighted_sum.hpp"

namespace syslab::weighted_sum {

struct BackwardOracle {
  Expected dx, dw;
};

// The tolerance of an element is sum_of_products_bound() of its sum.
Expected forward_oracle(const Problem& problem, const ConstTensorView& x, const ConstTensorView& w);
BackwardOracle backward_oracle(const Problem& problem, const ConstTensorView& x, const ConstTensorView& w,
                               const ConstTensorView& dy);

}  // namespace syslab::weighted_sum
