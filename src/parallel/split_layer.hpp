// The forward pass of one gated layer on several ranks, for real and to be timed: computing and communicating apart,
// and one behind the other. parallel/layer_costs.hpp says on paper what takes longer.
//
//   SplitLayer layer(ranks, {.tokens = 256, .d_model = 256, .d_ff = 1024, .element_bytes = 4}, LayerSplit::fsdp, 1);
//   layer.refresh();             // new tokens; what must be communicated is spoiled
//   layer.forward(stream);       // y of this rank: FSDP its own tokens', tensor parallelism all tokens'
//   layer.error();               // ≤ 1: the worst error over its bound
//
//   fsdp    a rank has B/n tokens and a flat 1/n of all weights: all-gather of 3DF, then three products
//   tensor  a rank has all tokens and F/n columns of W₁ and W₂, rows of W₃: three products, then all-reduce of B·D
//
// f is max(u, 0). fp32 in the host's memory. A layer of layer_walk.hpp counts; this one takes time.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "comm/communicator.hpp"
#include "core/random.hpp"
#include "parallel/layer_costs.hpp"

namespace syslab::parallel {

enum class LayerSplit { fsdp, tensor };
LayerSplit parse_layer_split(std::string_view name);  // Error(usage) for other words

// Error(usage) where tokens or hidden numbers, and so the weights, do not divide evenly, and for sizes that are none.
void require_even(const GatedLayer& layer, std::int64_t ranks);

class SplitLayer {
 public:
  // Error(usage) as require_even(). `ranks` outlives it.
  SplitLayer(comm::Communicator& ranks, const GatedLayer& layer, LayerSplit split, std::uint64_t seed);

  void refresh();
  // Both are done when they return.
  void communicate(device::Stream stream);
  void compute();
  void forward(device::Stream stream);

  // Of what forward() left, in two rows: the worst |y − exact| over its bound. Bounds follow a product's rounding
  // errors through the layer (Higham, ch. 3): γ_D of each hidden number, γ_F of the sum, and n − 1 additions of ranks.
  double error() const;
  double checked_fraction() const;
  // On paper, of this rank: operations of products and bytes sent.
  PassCosts costs() const;

 private:
  std::int64_t rows() const { return split_ == LayerSplit::fsdp ? layer_.tokens / ranks_.size() : layer_.tokens; }
  std::int64_t columns() const { return split_ == LayerSplit::fsdp ? layer_.d_ff : layer_.d_ff / ranks_.size(); }
  std::int64_t part() const;  // of all weights, in elements
  double error_of_row(std::int64_t row) const;

  comm::Communicator& ranks_;
  GatedLayer layer_;
  LayerSplit split_;
  RandomStream tokens_;
  std::uint64_t sample_ = 0;
  std::vector<float> all_;              // W₁, W₂ (D × F) and W₃ (F × D): what everything is checked against
  std::vector<float> weights_;          // the same as this rank holds them; with FSDP whole once gathered
  std::vector<float> x_, x1_, x2_, y_;  // rows × D, rows × columns twice (x₁ becomes z), rows × D
};

}  // namespace syslab::parallel
