// The exact result, as far as double precision is exact, beside the error a correct kernel may make. Tensors of any
// dtype and any row stride.
#pragma once

#include <vector>

#include "ops/rms_norm/rms_norm.hpp"

namespace syslab::rms_norm {

// One output, row-major over its shape.
struct Expected {
  std::vector<double> value, tolerance;
};

struct ForwardOracle {
  Expected h, y, rstd;  // h empty without `add`
};
struct BackwardOracle {
  Expected dx, dw;
};

ForwardOracle forward_oracle(const Problem& problem, const ConstTensorView& x, const ConstTensorView& delta,
                             const ConstTensorView& w);
// rstd is taken as it is given, a number like any other. `dh` and `before` (what dw held, when accumulating) may have
// no memory.
BackwardOracle backward_oracle(const Problem& problem, const ConstTensorView& dy, const ConstTensorView& h,
                               const ConstTensorView& w, const ConstTensorView& rstd, const ConstTensorView& dh = {},
                               const ConstTensorView& before = {});

}  // namespace syslab::rms_norm
