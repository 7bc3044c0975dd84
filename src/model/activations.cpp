#include "model/activations.hpp"

#include <fmt/format.h>

namespace syslab::model {

std::vector<KeptTensor> listed(const Activations& activations) {
  std::vector<KeptTensor> list;
  const auto add = [&list](const std::string& name, const Tensor& tensor) {
    if (!tensor.empty()) list.push_back({name, tensor});
  };
  const auto add_norm = [&add](const std::string& name, const NormSaved& saved) {
    add(name + ".residual", saved.residual);
    add(name + ".rstd", saved.rstd);
    add(name + ".normalized", saved.normalized);
  };
  for (std::size_t i = 0; i < activations.blocks.size(); ++i) {
    const Activations::Block& block = activations.blocks[i];
    const std::string name = fmt::format("layers.{}", i);
    add_norm(name + ".ln1", block.norm1);
    add(name + ".attn.qkv", block.attention.qkv);
    add(name + ".attn.merged", block.attention.merged);
    add(name + ".attn.lse", block.attention.lse);
    add(name + ".attn.kept", block.attention.kept);
    add_norm(name + ".ln2", block.norm2);
    add(name + ".ffn.gate_up", block.feed_forward.gate_up);
    add(name + ".ffn.gated", block.feed_forward.gated);
  }
  add_norm("ln_final", activations.final_norm);
  add(activations.has_gradient ? "dlogits" : "logits", activations.logits);
  add("row_loss", activations.row_loss);
  add("lse", activations.lse);
  add("loss", activations.loss);
  return list;
}

}  // namespace syslab::model
