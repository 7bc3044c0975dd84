// The error of a precision and variant against the float64 reference, on a model small enough for the reference: same
// code and head dimension as the large one.
#pragma once

#include <string>
#include <vector>

#include "contract/measured_step.hpp"
#include "model/transformer.hpp"
#include "model/vanishing_queries.hpp"

namespace syslab::model {

// The error of a StepCheck here: ‖found − expected‖ / size over all elements. Of gradients the worst parameter's. The
// size is ‖expected‖; where what is expected is a difference that may cancel, at least what the roundings of its terms
// are worth:
//
//   logits      sums of x·w over the width: the root of the sum of those products' squares, which for weights of random
//               signs is ‖logits‖ but for chance. One class has one number for a logit, which may be nearly 0
//   loss        lse − z, of logits up to m: rounding leaves ε = 16u·(1 + m + ln V), u of the dtype it is computed in.
//               (An exponential of t, |t| ≤ 2m, is off by u·(6m + 4), a logarithm by 2u·ln V, the two differences by
//               u·(6m + ln V); a loss is near 0 where one class has the whole sum, so that nothing is rounded.)
//               It is allowed what the tolerance allows: size ≥ ε / tolerance
//   gradients   those of p − 1, where one class has all of p: ε / tolerance of what they were, were the 1 there alone.
//               And a softmax over one key, or over keys with equal values, has zero gradient: gradients of Q
//               and K that vanish (below) are held to what attention's own roundings make of them
//               (model/vanishing_queries.hpp): size = that / tolerance

// The tolerance of a precision on a model with that many layers. fp32 and TF32: the figures of the hand-out page (1e-5
// and 1e-4; 1e-2). Where activations are stored in half precision, √n·u: a value is rounded n times on its way, each
// time by at most its unit roundoff u, independently. A block rounds twelve times forward (two norms, Q, K and V, RoPE,
// weights of attention, its result, the projection, two residual sums, gate and up, their product, the last
// projection), a backward pass as often again, the head and the embedding twice. (On average a rounding is a third of u
// in square: the rest is room for what a layer magnifies.)
struct Tolerance {
  double logits = 0, gradients = 0;
};
Tolerance tolerance_of(Precision precision, std::int64_t layers);
double roundings_of(std::int64_t layers);  // n, of a pass in one direction

// For rounding_of_queries() of a layer, but for `input`: largest_norm() of the gains of the norm before it.
QueryArithmetic query_arithmetic(const ModelConfig& config, std::int64_t layer, const DTypes& dtypes,
                                 const Tolerance& tolerance);
double largest_norm(const std::vector<double>& gains);  // of a row behind a norm

// In place of the logits' gradient, in fp64 on the CPU, the term of it that the targets have alone: −1/rows at each.
void leave_targets(const TensorView& dlogits, const std::vector<std::int64_t>& targets);

// A small model for `config`: its head dimension, positions and layout, two layers, two heads. Smaller sizes stay.
ModelConfig reduced(const ModelConfig& config);

// By parameter, whether its exact gradient is nothing, so that what others find there is rounding: for all parameters
// of a model with one token, which has loss 0, and of Q and K where no softmax chooses between different values.
// `norms`: of the fp64 reference's gradients, which round as well: by 1e-16 of V's, where no choice that matters is
// worth less than 1e-9.
std::vector<bool> vanishing(const ParameterLayout& layout, const std::vector<double>& norms);

// One forward and backward pass over two sequences with random weights that no precision rounds. Waits.
std::vector<StepCheck> against_reference(const ModelConfig& config, const TransformerOptions& options,
                                         device::Stream stream, std::uint64_t seed);

}  // namespace syslab::model
