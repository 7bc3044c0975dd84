// The parameters of a model: their names in the order that users know, and where each lies in one contiguous arena.
//
// Two orders. *Registration order* is the framework's `parameters()`: embedding, layers 0 … L−1 (q, k, v, output
// projection, w1, w2, w3, ln1, ln2), ln_final, lm_head. Names, indices, files and buckets use it. *Arena order* is
// the order in which a backward pass finishes gradients, so that what is final is always a prefix of the arena and one
// reduction takes a contiguous piece of it:
//
//   lm_head · ln_final · layer L−1: w2, (w1, w3), ln2, output, (q, k, v), ln1 · layer L−2 … layer 0 · embedding
//
// Tensors in brackets are adjacent, without padding: (q, k, v) is one matrix (3·d, d), (w1, w3) one of (2·d_ff, d),
// each read by a single matrix product. Every tensor or bracket begins at a multiple of the alignment; the elements
// in between belong to no tensor, are zero, and stay zero under every update that maps zeros to zeros.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/tensor.hpp"
#include "model/config.hpp"

namespace syslab::model {

enum class ParameterKind { embedding, linear, norm };
std::string_view to_string(ParameterKind kind);

struct ParameterInfo {
  std::string name;  // "layers.0.attn.q_proj.weight"
  Shape shape;       // linear: (out, in); embedding: (vocab, d); norm: (d)
  ParameterKind kind = ParameterKind::linear;
  std::int64_t layer = -1;  // -1: outside the blocks (embedding, final norm, LM head)
};

// 128 B of a two-byte copy, 256 B of fp32, 512 B of fp64.
inline constexpr std::int64_t kAlignedElements = 64;

// Indices, in registration order, of the parameters of one block.
struct LayerIndices {
  int q, k, v, output, w1, w2, w3, ln1, ln2;
};

class ParameterLayout {
 public:
  // Validates it. `alignment`: in elements, a multiple of kAlignedElements; who divides stretches of the arena among
  // ranks takes that many times the ranks. Error(usage).
  explicit ParameterLayout(const ModelConfig& config, std::int64_t alignment = kAlignedElements);

  const ModelConfig& config() const { return config_; }

  // By index, which is the registration order.
  int size() const { return static_cast<int>(infos_.size()); }
  std::span<const ParameterInfo> infos() const { return infos_; }
  const ParameterInfo& info(int index) const { return infos_[static_cast<std::size_t>(index)]; }
  std::int64_t offset(int index) const { return offsets_[static_cast<std::size_t>(index)]; }  // elements

  int embedding() const { return 0; }
  LayerIndices layer(std::int64_t layer) const;
  int ln_final() const { return size() - 2; }
  int lm_head() const { return size() - 1; }

  // Error(usage) with the nearest names if there is none.
  int index_of(std::string_view name) const;
  std::vector<std::string> names() const;

  // Indices as their tensors lie in the arena.
  std::span<const int> arena_order() const { return arena_order_; }
  std::int64_t elements() const { return elements_; }      // of the arena, padding and all; a multiple of the alignment
  std::int64_t parameters() const { return parameters_; }  // without padding
  // For tests: one past the last element of tensor `index` with the padding that follows it, where the next one begins.
  std::int64_t padded_end(int index) const { return padded_ends_[static_cast<std::size_t>(index)]; }

  // Tensor `index` and those that lie side by side with it, in that order.
  std::span<const int> bracket(int index) const {
    const Bracket& of = brackets_[static_cast<std::size_t>(index)];
    return std::span(arena_order_).subspan(of.first, of.count);
  }
  // All of them as one: (rows of all, width); a norm (d).
  Shape bracket_shape(int index) const;

  // The bracketed tensors of a layer as one matrix, beginning at the offset of q, of w1.
  Shape qkv_shape() const { return {3 * config_.d_model, config_.d_model}; }

 private:
  void register_all();
  void place(std::span<const int> bracket);

  ModelConfig config_;
  std::int64_t alignment_;
  std::vector<ParameterInfo> infos_;
  std::vector<std::int64_t> offsets_, padded_ends_;
  std::vector<int> arena_order_;
  struct Bracket {
    std::size_t first = 0, count = 0;  // of arena_order_
  };
  std::vector<Bracket> brackets_;  // by index
  std::unordered_map<std::string, int> index_;
  std::int64_t elements_ = 0, parameters_ = 0;
};

}  // namespace syslab::model
