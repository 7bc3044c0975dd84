// A row of the gated layer of paper/layer_costs.hpp in fp64, and the error that an fp32 or bf16 computation may make:
// what trials/split_layer.hpp is checked against.
//
// Followed through the layer, with u the unit roundoff of the dtype and t, s a hidden number's two products:
//
//   products   t′ = t + a, s′ = s + b: a sum of D products in fp32, rounded once to the dtype (ops/sum_of_products.hpp)
//   gate       silu(t′)s′ = silu(t)s + silu′(t)·a·s + silu(t)·b, to first order, and a²/4·|s′| + |silu′(t)·a·b| more
//              (|silu″| ≤ 1/2); computed within (16 + 3|t′|) roundings of fp32 (ops/swiglu/oracle.cpp) and one of
//              the dtype
//   inherited  Σ of what the F hidden numbers are off by, times their weights. Roundings are independent and of mean
//              zero, so that the sum of the first-order ones is beyond 8·√Σ(…)² with probability 2.5e-14 at most
//              (Hoeffding), as core/rounding.hpp has it of a sum's own; the worst case where that is less
//   sums       in as many parts as ranks, each of F/n products in fp32; then n roundings of the dtype: each part's, and
//              n − 1 additions in any order
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor.hpp"
#include "paper/layer_costs.hpp"

namespace syslab::parallel {

struct GatedRow {
  std::vector<double> value, bound;  // D of each: of y, and of |computed − y|
};

// `x`: D numbers; `weights`: W₁, W₂ (D × F) and W₃ (F × D) one behind the other. Both of the same dtype, contiguous, in
// the host's memory. `parts` divides F. On the threads there are.
GatedRow gated_row(const GatedLayer& layer, const ConstTensorView& x, const ConstTensorView& weights,
                   std::int64_t parts);

}  // namespace syslab::parallel
