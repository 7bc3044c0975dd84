// Causal self-attention of one block: projections, rotary positions, attention, output projection.
//
//   normalized (rows, d) ──Wqkv──▶ qkv (rows, 3·d) ──RoPE on Q, K──▶ attention ──▶ merged (rows, d)
//   merged (rows, d) ──Wo──▶ out (rows, d)
//
// A row of qkv holds Q, K and V of all heads, (3, heads, head_dim): attention reads it by strides and writes heads
// side by side, so nothing is transposed.
#pragma once

#include <string>

#include "model/pass_context.hpp"

namespace syslab::model {

// Kept from the forward pass for the backward pass.
struct AttentionSaved {
  Tensor qkv;     // (rows, 3·d), Q and K rotated
  Tensor merged;  // (rows, d)
  Tensor lse;     // (batch, heads, seq)
  Tensor kept;    // what the attention rung itself keeps: bytes
};

struct RopeTables {
  ConstTensorView cos, sin;  // (context, head_dim / 2); no data where the model has no positions
};

// out (rows, d) in the dtype of products, or nothing where it is unwanted. `name`: "layers.3.attn"; `index`: the
// layer's parameters, of which (q, k, v) are read as one matrix (3·d, d) and the output projection as (d, d).
Tensor attention_forward(const PassContext& pass, const std::string& name, const LayerIndices& index,
                         const RopeTables& tables, const ConstTensorView& normalized, AttentionSaved& saved,
                         Output output = Output::wanted);

// The gradient of `normalized` from that of `out`, (rows, d) in the dtype of products, and the weights'. Memory of
// `saved` is freed as soon as it is no longer needed. `normalized`: as forward.
Tensor attention_backward(const PassContext& pass, const std::string& name, const LayerIndices& index,
                          const RopeTables& tables, const Given& normalized, AttentionSaved saved,
                          const ConstTensorView& dout);

}  // namespace syslab::model
