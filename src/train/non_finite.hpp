// Where a NaN came from: a loss that is no number is reported with the first tensor that held one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/transformer.hpp"

namespace syslab::train {

struct NonFinite {
  std::string tensor;        // "layers.3.attn.qkv"; "layers.3.attn.q_proj.weight" where a weight held it already
  std::int64_t index = 0;    // of the first such element, row-major
  double value = 0;          // NaN or ±∞
  std::string text() const;  // "layers.3.attn.qkv[17, 5] of (2048, 2304) in bf16 is NaN"

  Shape shape;
  DType dtype = DType::f32;
};

// Looks through the weights, then through every tensor of a forward pass over `tokens` and, where the model has
// gradients (which are written over), of a backward pass, in the order they are made. Slow: reads all of them on the
// host. Nothing: all are finite.
std::optional<NonFinite> first_non_finite(model::Transformer& model, const model::Tokens& tokens,
                                          const std::int64_t* targets);

}  // namespace syslab::train
