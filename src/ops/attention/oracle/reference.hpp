// The bottom rung: the formulas as written, in double precision, one query row at a time.
//
// Tests compare it with finite differences, and compare oracle.hpp (which also bounds errors) with it.
#pragma once

#include "ops/attention/attention.hpp"

namespace syslab::attention {

// fp64 tensors throughout, lse included. A row that sees no key gets O = 0 and L = −∞.
void reference_forward(const Problem& problem, const ForwardArgs& args);

// With P_ij = exp(S_ij − L_i), D_i = Σ_d O_id·dO_id and dS = P ∘ (dO·Vᵀ − D):
//   dV = Pᵀ·dO,   dQ = scale · dS·K,   dK = scale · dSᵀ·Q,   dK and dV summed over the query heads that share them.
// Uses `out` and `lse` as given. Source: Dao (2023), algorithm 2.
void reference_backward(const Problem& problem, const BackwardArgs& args);

}  // namespace syslab::attention
