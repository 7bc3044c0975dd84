// The gated feed-forward of one block: out = W2·(silu(W1·x) ∘ W3·x).
//
//   normalized (rows, d) ──W1, W3──▶ gate_up (rows, 2·f) ──SwiGLU──▶ gated (rows, f) ──W2──▶ out (rows, d)
#pragma once

#include <string>

#include "model/pass.hpp"

namespace syslab::model {

// Weights as products read them, or their gradients.
template <typename View>
struct FeedForwardMatrices {
  View w13;  // (2·f, d): W1 and W3, neighbours in the arena
  View w2;   // (d, f)
};

struct FeedForwardSaved {
  Tensor gate_up;  // (rows, 2·f): W1·x beside W3·x
  Tensor gated;    // (rows, f)
};

// out (rows, d) in the dtype of products, or nothing where it is unwanted. `name`: "layers.3.ffn".
Tensor feed_forward(const Pass& pass, const std::string& name, const FeedForwardMatrices<ConstTensorView>& weights,
                    const ConstTensorView& normalized, FeedForwardSaved& saved, Output output = Output::wanted);

// As attention_backward().
Tensor feed_forward_backward(const Pass& pass, const std::string& name,
                             const FeedForwardMatrices<ConstTensorView>& weights, const ConstTensorView& normalized,
                             FeedForwardSaved saved, const ConstTensorView& dout,
                             const FeedForwardMatrices<TensorView>& gradients, bool add);

}  // namespace syslab::model
