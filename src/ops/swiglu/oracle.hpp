// The exact result, as far as double precision is exact, beside the error a correct kernel may make. Tensors of any
// dtype and any row stride.
#pragma once

#include <vector>

#include "ops/swiglu/swiglu.hpp"

namespace syslab::swiglu {

// One output, row-major over its shape.
struct Expected {
  std::vector<double> value, tolerance;
};

struct BackwardOracle {
  Expected dgate, dup;
};

Expected forward_oracle(const Problem& problem, const ConstTensorView& gate, const ConstTensorView& up);
BackwardOracle backward_oracle(const Problem& problem, const ConstTensorView& gate, const ConstTensorView& up,
                               const ConstTensorView& dout);

}  // namespace syslab::swiglu
