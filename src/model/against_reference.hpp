// How far a precision and variant is from the float64 reference, on a model small enough for the reference: the same
// code as the large one's, with the same head dimension.
#pragma once

#include <string>
#include <vector>

#include "model/transformer.hpp"

namespace syslab::model {

// ‖found − expected‖ / ‖expected‖ over all elements.
struct Distance {
  std::string name;  // "logits", "loss", "gradients": the worst parameter's
  double error = 0, tolerance = 0;
  std::string message;  // the model it was found on, and where
};

// What a precision may be off on a model of so many layers. fp32 and TF32: the figures of the hand-out page (1e-5 and
// 1e-4; 1e-2). Where activations are stored in half precision, √n·u: a value is rounded n times on its way, each time
// by at most its unit roundoff u, independently. A block rounds twelve times forward (two norms, Q, K and V, RoPE,
// weights of attention, its result, the projection, two residual sums, gate and up, their product, the last
// projection), a backward pass as often again, the head and the embedding twice. (On average a rounding is a third of u
// in square: the rest is room for what a layer magnifies.)
struct Tolerance {
  double logits = 0, gradients = 0;
};
Tolerance tolerance_of(Precision precision, std::int64_t layers);

// The model that stands for `config`: its head dimension, positions and layout, two layers, two heads.
ModelConfig reduced(const ModelConfig& config);

// One forward and backward pass over two sequences with random weights that no precision rounds. Waits.
std::vector<Distance> against_reference(const ModelConfig& config, const TransformerOptions& options,
                                        device::Stream stream, std::uint64_t seed);

}  // namespace syslab::model
