// The exact norm and factor and the error that a correct kernel may make: squares summed in double in any order, and
// one rounding to fp32 (fp64 for fp64), so that integers give a bitwise exact norm.
#pragma once

#include "contract/expected.hpp"
#include "ops/global_norm/global_norm.hpp"

namespace syslab::global_norm {

struct Oracle {
  Expected norm, factor;
  std::int64_t non_finite = 0;
};

Oracle oracle(const Problem& problem, const ConstTensorView& g, double max_norm, double grad_scale = 1);
// One rounding of the product in fp32 (fp64 for fp64) and one of the store.
Expected scale_oracle(const Problem& problem, const ConstTensorView& g, double factor);

}  // namespace syslab::global_norm
