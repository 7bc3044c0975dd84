// One exact step (in double precision) and the error that a correct kernel in fp32 (u = 2⁻²⁴) may make. First-order
// bounds with every constant counted, since each scalar of the step is rounded once to fp32:
//
//   g      3u|g|               scale, scale · clip, product
//   m      3u|β₁m| + 6u|(1−β₁)g|
//   v      3u|β₂v| + 10u(1−β₂)g²
//   denom  from v by the root's slope, never more than the root of v's error; 5u of the rest
//   p      u for each of at most six results of p's size, the update's 8u, and m's error through the division
//
// and half the smallest subnormal number for each product.
#pragma once

#include "contract/expected.hpp"
#include "ops/adamw/adamw.hpp"

namespace syslab::adamw {

struct Oracle {
  Expected p, m, v, copy;  // copy empty without copy_dtype
};

// Tensors are in host memory, before the step. `clip` as in Args.
Oracle oracle(const Problem& problem, const ConstTensorView& p, const ConstTensorView& m, const ConstTensorView& v,
              const ConstTensorView& g, const Scalars& scalars, double clip = 1);

}  // namespace syslab::adamw
