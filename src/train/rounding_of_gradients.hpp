// How far rounding may put an element of a gradient off: ρ.
//
//   passes    A value is rounded n times on its way forward (model::roundings_of) and as often back, each time as a
//             sum of at most k products, k the largest width. 2nk independent roundings stay within λ·√(2nk)·u of what
//             is rounded, λ = 4 (ops/attention/error_bound.hpp), and of the gradient's norm each of N elements has its
//             share: ρ = λ·√(2nk)·u·‖g‖/√N. Factors and results in TF32 or half precision are one more of each sum.
//             (Shares are not quite even: of 200 million elements in fp32 five are beyond, by a third at most.)
//   rows      Those of the embedding and of the head are of a token each. One that is not there has a gradient of 0, in
//             which nothing rounds: these have their norms by row.
//   targets   What is passed back is p − y of each position. It cancels where p is nearly 1, and so do positions of one
//             token that have different targets: what rounds is the terms, so that ‖g‖ is at least what the targets'
//             term alone makes of it.
//   Q and K   + what attention's own difference leaves (model/vanishing_queries.hpp), shared alike
//
// TF32 and half precision are held to tolerances of many steps of many weights, which single ones do not touch and
// bounds of all would widen. There ρ is 0 but where the exact gradient is nothing (model::vanishing).
#pragma once

#include <cstdint>
#include <vector>

#include "model/against_reference.hpp"

namespace syslab::train {

using ByParameter = std::vector<std::vector<double>>;

// A forward and backward pass of the reference.
struct ExactPass {
  std::int64_t positions = 0;  // of all sequences
  ByParameter weights, gradients;
  ByParameter of_targets;  // gradients, where model::leave_targets() is what is passed back
  model::QueryRows queries;
};

// λ·√(passes·nk)·u: what the values of so many passes in one direction (1 forward, 2 with the way back) are rounded by,
// relative to their norm. `positions`: of all sequences, where sums run over them; 0 forward.
double rounding_of_passes(const model::ModelConfig& config, const model::TransformerOptions& options, int passes,
                          std::int64_t positions);

// By parameter one number, or one a row, for who takes that pass in another precision.
ByParameter rounding_of_gradients(const model::ParameterLayout& layout, const ExactPass& exact,
                                  const model::TransformerOptions& options);

}  // namespace syslab::train
