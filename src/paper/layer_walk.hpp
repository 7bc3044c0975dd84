// The gated layer of paper/layer_costs.hpp computed for real, forward and backward, on a grid of ranks within one
// process: every product and every message of the ring collectives is counted. It shows that the equations give the
// gradients of the whole layer, and what they cost.
//
//   const LayerWalk walk = walk_layer(walkable_layer({2, 4}), {2, 4}, Scheme::sharded);
//   walk.wrong;                                    // 0
//   walk.backward.tensor_sent_bytes;               // as sharded_costs says, to the byte
//
// On rank i of the tensor axis, which holds columns of W₁ and W₂ and the same rows of W₃, backward is
//
//   dW₃⁽ⁱ⁾ = z⁽ⁱ⁾ᵀ dy        dz⁽ⁱ⁾ = dy W₃⁽ⁱ⁾ᵀ
//   dx₂⁽ⁱ⁾ = dz⁽ⁱ⁾ ∘ f(x₁⁽ⁱ⁾)     dx₁⁽ⁱ⁾ = dz⁽ⁱ⁾ ∘ f′(x₁⁽ⁱ⁾) ∘ x₂⁽ⁱ⁾
//   dW₂⁽ⁱ⁾ = xᵀ dx₂⁽ⁱ⁾       dW₁⁽ⁱ⁾ = xᵀ dx₁⁽ⁱ⁾
//   dx = all-reduce over i of ( dx₁⁽ⁱ⁾ W₁⁽ⁱ⁾ᵀ + dx₂⁽ⁱ⁾ W₂⁽ⁱ⁾ᵀ )
//
// Exact: inputs are small whole numbers and f(u) = u² + u, so that doubles hold every sum whatever its order. The
// reference is the plain forward pass of the whole layer, differentiated by dual numbers, which knows no equation of
// the backward pass.
#pragma once

#include <cstdint>

#include "paper/layer_costs.hpp"

namespace syslab::parallel {

enum class Scheme {
  data_parallel,  // every rank holds all weights; the grid has no tensor axis
  sharded,        // FSDP over the data axis, tensor parallelism over the other
};

struct LayerWalk {
  std::int64_t compared = 0;    // elements of y, and derivatives along directions: four of x, four of each weight
  std::int64_t wrong = 0;       // of those
  PassCosts forward, backward;  // counted, of the rank with most of each
};

// The smallest layer that divides evenly over the grid: all ranks have as much to do, as the formulas assume.
GatedLayer walkable_layer(const Grid& grid);

// Any layer with as many tokens as the data axis has ranks, and as wide a hidden dimension as the tensor axis; parts
// that do not divide evenly differ by one. Small ones: the time is that of plain loops. Error(usage) for others.
LayerWalk walk_layer(const GatedLayer& layer, const Grid& grid, Scheme scheme, std::uint32_t seed = 1);

}  // namespace syslab::parallel
