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

// What a precision may be off: its unit roundoff many times over, more for gradients, which pass through more products.
// The hand-out page's figures for fp32 (1e-5, 1e-4), TF32 (1e-2) and bf16 (2e-2); fp16 in proportion to its roundoff.
struct Tolerance {
  double logits = 0, gradients = 0;
};
Tolerance tolerance_of(Precision precision);

// The model that stands for `config`: its head dimension, positions and layout, two layers, two heads.
ModelConfig reduced(const ModelConfig& config);

// One forward and backward pass over two sequences with random weights that no precision rounds. Waits.
std::vector<Distance> against_reference(const ModelConfig& config, const TransformerOptions& options,
                                        device::Stream stream, std::uint64_t seed);

}  // namespace syslab::model
