// The exact result, as far as double precision is exact, beside the error a correct kernel may make: what `check`
// compares with. Tensors of any dtype and any strides; for problems too large to do whole, a seeded part.
//
//   const ForwardOracle oracle = forward_oracle(problem, q, k, v, {.budget = 1e8, .seed = case_seed});
//   compare(out, oracle.out.value, oracle.out.tolerance);
#pragma once

#include <vector>

#include "ops/attention/attention.hpp"

namespace syslab::attention {

// How much to compute. `budget` counts multiply-adds of one product over visible pairs (pairs · head_dim): about 3e8 a
// second and core forward, a third of that backward. What is chosen depends on the problem and the seed alone.
struct Part {
  double budget = 3e8;
  std::uint64_t seed = 0;
};

// One output, row-major over its shape: NaN in `value` (and 0 in `tolerance`) where it was not computed.
struct Expected {
  std::vector<double> value, tolerance;
};

// `fraction`: share of elements computed, above 0.
struct ForwardOracle {
  Expected out, lse;
  double fraction = 1.0;
};

struct BackwardOracle {
  Expected dq, dk, dv;
  double fraction = 1.0;
};

// Query rows spread evenly over all heads, jittered by the seed, the first and the last row always among them.
ForwardOracle forward_oracle(const Problem& problem, const ConstTensorView& q, const ConstTensorView& k,
                             const ConstTensorView& v, const Part& part = {});

// Whole key/value heads with all the query heads that read them, at least one. Takes no O and L: they are computed, and
// the bounds allow for the rounding of those that the kernel was given.
BackwardOracle backward_oracle(const Problem& problem, const ConstTensorView& q, const ConstTensorView& k,
                               const ConstTensorView& v, const ConstTensorView& dout, const Part& part = {});

}  // namespace syslab::attention
