// The gated feed-forward of one block: out = W2·(silu(W1·x) ∘ W3·x).
//
//   normalized (rows, d) ──W1, W3──▶ gate_up (rows, 2·f) ──SwiGLU──▶ gated (rows, f) ──W2──▶ out (rows, d)
#pragma once

#include <string>

#include "model/pass_context.hpp"

namespace syslab::model {

struct FeedForwardSaved {
  Tensor gate_up;  // (rows, 2·f): W1·x next to W3·x
  Tensor gated;    // (rows, f); empty if it will be recomputed
};

// out (rows, d) in the dtype of products, or nothing where it is unwanted. `name`: "layers.3.ffn"; `index`: the layer's
// parameters, of which (w1, w3) are read as one matrix (2·f, d) and w2 as (d, f).
Tensor feed_forward(const PassContext& pass, const std::string& name, const LayerIndices& index,
                    const ConstTensorView& normalized, FeedForwardSaved& saved, Output output = Output::wanted);

// As attention_backward().
Tensor feed_forward_backward(const PassContext& pass, const std::string& name, const LayerIndices& index,
                             const Given& normalized, FeedForwardSaved saved, const ConstTensorView& dout);

}  // namespace syslab::model
