// The exact result (in double precision) and the error that a correct kernel may make. Tensors of any
// dtype and any row stride.
#pragma once

#include "contract/expected.hpp"
#include "ops/rms_norm/rms_norm.hpp"

namespace syslab::rms_norm {

struct ForwardOracle {
  Expected h, y, rstd;  // h empty without `add`
};
struct BackwardOracle {
  Expected dx, dw;
};

ForwardOracle forward_oracle(const Problem& problem, const ConstTensorView& x, const ConstTensorView& delta,
                             const ConstTensorView& w);
// rstd is used as given. `dh` and `before` (the initial dw when accumulating) may have no memory.
BackwardOracle backward_oracle(const Problem& problem, const ConstTensorView& dy, const ConstTensorView& h,
                               const ConstTensorView& w, const ConstTensorView& rstd, const ConstTensorView& dh = {},
                               const ConstTensorView& before = {});

}  // namespace syslab::rms_norm
