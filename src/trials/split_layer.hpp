// The forward pass of one gated layer on several ranks, for real and to be timed: computing and communicating
// separately, and one after the other. paper/layer_costs.hpp says on paper what takes longer.
//
//   SplitLayer layer(ranks, {.tokens = 8192, .d_model = 4096, .d_ff = 8192}, LayerSplit::fsdp, 1, stream);
//   layer.refresh();             // new tokens; what must be communicated is spoiled
//   layer.forward();             // y of this rank: FSDP its own tokens', tensor parallelism all tokens'
//   layer.error();               // ≤ 1: the worst error over its bound
//
//   fsdp    a rank has B/n tokens and a flat 1/n of all weights: all-gather of 3DF, then three products
//   tensor  a rank has all tokens and F/n columns of W₁ and W₂, rows of W₃: three products, then all-reduce of B·D
//
// f is silu. Elements of 4 bytes are fp32, of 2 bytes, as the hand-out counts them, bf16: products are summed in fp32
// and rounded to it. Only the rungs differ between devices: cuBLAS and a kernel on a GPU, otherwise the host's. A layer
// of layer_walk.hpp counts; this one takes time.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "comm/communicator.hpp"
#include "core/random.hpp"
#include "device/buffer.hpp"
#include "device/pattern.hpp"
#include "device/stream.hpp"
#include "ops/gemm/gemm.hpp"
#include "ops/swiglu/swiglu.hpp"
#include "paper/layer_costs.hpp"

namespace syslab::parallel {

enum class LayerSplit { fsdp, tensor };
LayerSplit parse_layer_split(std::string_view name);  // Error(usage) for other words

// Error(usage) where tokens or hidden numbers, and so the weights, do not divide evenly, and for sizes that are none.
void require_even(const GatedLayer& layer, std::int64_t ranks);

class SplitLayer {
 public:
  // Error(usage) as require_even(), and for elements of other sizes. `ranks` and `stream`, of the ranks' kind of
  // device, outlive it; its end waits for a queue of the CPU.
  SplitLayer(comm::Communicator& ranks, const GatedLayer& layer, LayerSplit split, std::uint64_t seed,
             device::Stream stream);
  SplitLayer(const SplitLayer&) = delete;  // what is queued knows it by its address
  SplitLayer& operator=(const SplitLayer&) = delete;

  // All are queued.
  void refresh();
  void communicate();
  void compute();
  void forward();

  std::vector<device::Elements> results() const;  // y, as forward() leaves it
  // Of what forward() left, in two rows: the worst |y − exact| over its bound (trials/gated_row.hpp). Waits.
  double error() const;
  double checked_fraction() const;
  // On paper, of this rank: operations of products and bytes sent.
  PassCosts costs() const;

 private:
  std::int64_t rows() const { return split_ == LayerSplit::fsdp ? layer_.tokens / ranks_.size() : layer_.tokens; }
  std::int64_t columns() const { return split_ == LayerSplit::fsdp ? layer_.d_ff : layer_.d_ff / ranks_.size(); }
  std::int64_t weight_count() const { return 3 * layer_.d_model * layer_.d_ff; }
  std::int64_t part() const { return weight_count() / ranks_.size(); }
  device::Buffer room(std::int64_t elements, const char* tag) const;
  TensorView piece(const device::Buffer& of, std::int64_t first, Shape shape) const;
  void take_columns(const device::Buffer& all);
  void multiply(const TensorView& a, const TensorView& b, const TensorView& c, device::Stream stream) const;
  double error_of_row(std::int64_t row) const;

  comm::Communicator& ranks_;
  GatedLayer layer_;
  LayerSplit split_;
  DType dtype_;
  device::Stream stream_;
  const gemm::Rung& product_;
  const swiglu::Rung& gate_;
  RandomStream tokens_;
  std::uint64_t sample_ = 0;
  device::Buffer all_;      // of the host: W₁, W₂ (D × F) and W₃ (F × D), what everything is checked against
  device::Buffer weights_;  // the same as this rank holds them; with FSDP whole once gathered
  device::Buffer x_, x1_, x2_, y_;  // rows × D, rows × columns twice (x₁ becomes z), rows × D
  device::AwaitsQueues awaits_;
};

}  // namespace syslab::parallel
