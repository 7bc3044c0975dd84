// Which dtype every tensor of a training step has, read from a model as it runs.
#pragma once

#include <string>
#include <vector>

#include "model/transformer.hpp"

namespace syslab::train {

struct DtypeSeen {
  std::string tensor;  // "layers.*.attn.qkv", what all layers share; "parameters", "gradients", …
  DType dtype = DType::f32;
};

// The planes of the arena, then every tensor that a forward pass, the loss and a backward pass over `tokens` tell of,
// in that order, each (tensor, dtype) once: a layer that differs from the others has a line of its own. `scale` as for
// Transformer::loss_and_gradient. Gradients are overwritten; queued on the model's stream, waits for nothing.
std::vector<DtypeSeen> dtypes_seen(model::Transformer& model, const model::Tokens& tokens, const std::int64_t* targets,
                                   const ConstTensorView& scale);

}  // namespace syslab::train
