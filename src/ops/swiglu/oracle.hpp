// The exact result (in double precision) and the error that a correct kernel may make. Tensors of any
// dtype and any row stride.
#pragma once

#include "contract/expected.hpp"
#include "ops/swiglu/swiglu.hpp"

namespace syslab::swiglu {

struct BackwardOracle {
  Expected dgate, dup;
};

Expected forward_oracle(const Problem& problem, const ConstTensorView& gate, const ConstTensorView& up);
BackwardOracle backward_oracle(const Problem& problem, const ConstTensorView& gate, const ConstTensorView& up,
                               const ConstTensorView& dout);

}  // namespace syslab::swiglu
