// The state that a forward pass leaves for the backward pass, as a struct and as a list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/attention_layer.hpp"
#include "model/feed_forward_layer.hpp"
#include "model/residual_norm.hpp"

namespace syslab::model {

// Token ids in the memory of the model's device, row-major (batch, seq). A view.
struct Tokens {
  const std::int64_t* ids = nullptr;
  std::int64_t batch = 0, seq = 0;

  std::int64_t count() const { return batch * seq; }
};

struct Activations {
  // Tensors that are recomputed (model/recompute.hpp) are empty.
  struct Block {
    NormSaved norm1, norm2;
    AttentionSaved attention;
    FeedForwardSaved feed_forward;
  };
  Tokens tokens;
  std::vector<Block> blocks;
  NormSaved final_norm;
  Tensor logits;              // (rows, vocab); after loss() with a gradient, that gradient
  Tensor row_loss;            // (rows)
  Tensor lse;                 // (rows)
  Tensor loss;                // (1)
  bool has_gradient = false;  // loss_and_gradient() was called: `logits` holds the gradient
};

// The norm of a half-block: the first of its block or the second.
inline NormSaved& norm_of(std::vector<Activations::Block>& blocks, std::int64_t half) {
  Activations::Block& block = blocks[static_cast<std::size_t>(half / 2)];
  return half % 2 == 0 ? block.norm1 : block.norm2;
}

struct KeptTensor {
  std::string name;  // "layers.3.attn.qkv", as reported to an observer
  ConstTensorView tensor;

  std::size_t bytes() const { return static_cast<std::size_t>(tensor.elements()) * size_of(tensor.dtype); }
};

// All non-empty tensors, from the first block to the loss. Views, valid as long as the activations.
std::vector<KeptTensor> listed(const Activations& activations);

}  // namespace syslab::model
