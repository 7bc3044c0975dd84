// One gated feed-forward layer on many devices, on paper: operations, bytes and times of a device, and up to how many
// devices computing takes longer than communicating.
//
//   x₁ = xW₁   x₂ = xW₂   z = f(x₁) ∘ x₂   y = zW₃          x: B × D;  W₁, W₂: D × F;  W₃: F × D
//
// Forward is 3 matrix products, 6BDF operations; backward 6, 12BDF. Only they count. e bytes an element travel, with
// the hand-out e = 2. Collectives go around a ring (paper/ring_costs.hpp), and communication hides behind compute.
//
//   const GatedLayer layer{.tokens = 65536, .d_model = 4096, .d_ff = 11008};
//   const Machine machine{.flops_per_second = 460e12, .link_bytes_per_second = 180e9};
//   largest_split(layer, machine, Pass::forward, Axes::overlapped).ranks;         // 181.6: (1 + α)(1 + β)
//
// Source: hand-out 2026, data_parallel_calcs, fsdp_calcs, tp_calcs and fsdp_tp_calcs. paper/layer_walk.hpp computes
// such a layer and counts.
#pragma once

#include <cstdint>

#include "contract/pass.hpp"
#include "core/text/units.hpp"

namespace syslab::parallel {

struct GatedLayer {
  std::int64_t tokens = 0, d_model = 0, d_ff = 0;  // B, D, F
  std::int64_t element_bytes = 2;                  // e: of activations, weights and gradients on the wire
};

// Error(usage) naming the first size that is below 1.
void validate(const GatedLayer& layer);

struct Machine {
  double flops_per_second = 0;       // C, of one device
  double link_bytes_per_second = 0;  // W, out of one device
};

// Error(usage) unless both rates are positive and finite.
void validate(const Machine& machine);

// Devices in a rectangle: tokens are divided over `data` ranks, the hidden dimension F over `tensor` ranks.
struct Grid {
  std::int64_t data = 1, tensor = 1;

  std::int64_t ranks() const { return data * tensor; }
  bool operator==(const Grid&) const = default;
};

// Error(usage) unless each is 1 at least.
void validate(const Grid& grid);

// Of one device, in one pass: forward or backward, here and below.
struct PassCosts {
  double flops = 0;              // of matrix products
  double data_sent_bytes = 0;    // among ranks that divide the tokens: weights and their gradients
  double tensor_sent_bytes = 0;  // among ranks that divide F: sums of y, of dx
};

// Every rank holds all weights: nothing is sent in forward, in backward 3DF gradients are all-reduced.
PassCosts data_parallel_costs(const GatedLayer& layer, std::int64_t ranks, Pass pass);
// Weights are sharded over the data axis (FSDP) and split over the tensor axis. Forward gathers 3DF / N₂ weights and
// all-reduces y; backward gathers again, reduce-scatters as many gradients and all-reduces dx. {n, 1} is FSDP alone,
// {1, n} tensor parallelism alone.
PassCosts sharded_costs(const GatedLayer& layer, const Grid& grid, Pass pass);

// Whether messages of the two axes travel at the same time (the longer counts) or one after the other (both count).
enum class Axes { overlapped, serial };

Seconds compute_time(const PassCosts& costs, const Machine& machine);
Seconds communication_time(const PassCosts& costs, const Machine& machine, Axes axes);
// Computing takes no less time than communicating; times that differ by rounding alone are equal.
bool is_compute_bound(const PassCosts& costs, const Machine& machine, Axes axes);

// The largest N, not rounded, up to which a pass is bound by compute. None of them depends on D.
double data_parallel_limit(const GatedLayer& layer, const Machine& machine, Pass pass);  // forward: infinite

// With α = 2BW/(eC), and β = 3FW/(eC) in forward, twice that in backward, a grid is bound by compute while
//
//   overlapped   N_data ≤ 1 + α and N_tensor ≤ 1 + β                 N ≤ (1 + α)(1 + β)
//   serial       (N_data − 1)/α + (N_tensor − 1)/β ≤ 1               N ≤ (α + β + αβ)² / (4αβ)
//
// the latter at N_data = (α + β + αβ)/(2β), N_tensor = (α + β + αβ)/(2α) where both are at least 1; otherwise one axis
// alone is best.
struct SplitLimit {
  double ranks = 0, data = 0, tensor = 0;
};
SplitLimit largest_split(const GatedLayer& layer, const Machine& machine, Pass pass, Axes axes);
double fsdp_limit(const GatedLayer& layer, const Machine& machine);                        // 1 + α, in both passes
double tensor_parallel_limit(const GatedLayer& layer, const Machine& machine, Pass pass);  // 1 + β

// The same in whole ranks, found by trying: of all grids with a data axis of `most_data` ranks at most that are bound
// by compute, the one of most ranks (of equals, that of the shorter data axis). {1, 1} always is.
Grid largest_grid(const GatedLayer& layer, const Machine& machine, Pass pass, Axes axes, std::int64_t most_data);

}  // namespace syslab::parallel
