// The exact result (in double precision) and the error that a correct kernel may make, for `check`. Tensors of any
// dtype and strides; large problems are computed in part, chosen by the seed.
//
//   const ForwardOracle oracle = forward_oracle(problem, q, k, v, {.budget = 1e8, .seed = case_seed});
//   compare(out, oracle.out.value, oracle.out.tolerance);
#pragma once

#include "contract/expected.hpp"
#include "ops/attention/attention.hpp"

namespace syslab::attention {

// How much to compute. `budget` counts multiply-adds of one product over visible pairs (pairs · head_dim): about 3e8
// per second and core forward, a third of that backward. The choice depends only on the problem and the seed.
struct Part {
  double budget = 3e8;
  std::uint64_t seed = 0;
  double weights_unit = 0;    // ErrorModel::of
  double summed_unit = 0;     // the same in sums over queries, dK and dV, where larger
  std::int64_t include = -1;  // this one of the query rows (forward) or key/value heads (backward), in row-major order
};

// `fraction`: share of elements computed, above 0; the others have NaN as their value and 0 as their tolerance.
struct ForwardOracle {
  Expected out, lse;
  double fraction = 1.0;
};

struct BackwardOracle {
  Expected dq, dk, dv;
  double fraction = 1.0;
};

// Query rows spread evenly over all heads, jittered by the seed, always including the first and the last row.
ForwardOracle forward_oracle(const Problem& problem, const ConstTensorView& q, const ConstTensorView& k,
                             const ConstTensorView& v, const Part& part = {});

// Whole key/value heads with all query heads that read them, at least one. Computes O and L itself; the bounds allow
// for the rounding of those that the kernel was given.
BackwardOracle backward_oracle(const Problem& problem, const ConstTensorView& q, const ConstTensorView& k,
                               const ConstTensorView& v, const ConstTensorView& dout, const Part& part = {});

}  // namespace syslab::attention
