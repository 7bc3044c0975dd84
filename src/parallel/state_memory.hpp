// What one rank holds of a model's state, and what it sends in a training step, by how the state is sharded.
//
//   state_bytes(1'998'235'200, 2, Sharding::optimizer, kFp32State).total();     // 22.33 GiB
//
// Adam's two moments and, in mixed precision, an fp32 master copy belong to the optimizer's state. Activations, copies
// in a compute dtype and gathered weights are not counted.
//
// Sources: hand-outs 2025 and 2026, optimizer_state_sharding_accounting and fsdp_accounting; ZeRO (Rajbhandari et al.
// 2020), section 3 and table 1, for its stages and for 16 bytes a parameter in mixed precision.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace syslab::parallel {

enum class Sharding {
  none,       // plain data parallel
  optimizer,  // the hand-out's: whole parameters have owners, gradients are all-reduced, new weights broadcast
  zero1,      // the optimizer's state in flat parts: reduce-scatter of gradients, all-gather of weights
  zero2,      // gradients as well
  zero3,      // weights as well; FSDP
};
inline constexpr std::array kShardings{Sharding::none, Sharding::optimizer, Sharding::zero1, Sharding::zero2,
                                       Sharding::zero3};
std::string_view to_string(Sharding sharding);  // "none", "optimizer", "zero1", …

// Bytes a parameter.
struct StateWidths {
  std::int64_t weight = 0, gradient = 0, master = 0, moments = 0;
};
// Of a step that keeps weights, gradients and moments in one dtype of so many bytes.
constexpr StateWidths state_in(std::int64_t bytes) {
  return {.weight = bytes, .gradient = bytes, .master = 0, .moments = 2 * bytes};
}
inline constexpr StateWidths kFp32State = state_in(4);
inline constexpr StateWidths kMixedState{.weight = 2, .gradient = 2, .master = 4, .moments = 8};

// In bytes; shares of a rank on average, whole parameters that do not divide evenly included.
struct StateBytes {
  double weights = 0, gradients = 0, master = 0, moments = 0;

  double after_init() const { return weights + master; }  // the moments come with the first step
  double total() const { return weights + gradients + master + moments; }
};
// Error(usage) for fewer than one rank.
StateBytes state_bytes(double parameters, std::int64_t ranks, Sharding sharding, const StateWidths& widths);

// Of one rank in one step of the optimizer with `micro_steps` forward and backward passes.
struct StepTraffic {
  double sent_bytes = 0;   // on average over the ranks
  double timed_bytes = 0;  // by a link's rate: the time. More than what is sent where links idle in one direction
};
// `gradient_bytes` and `weight_bytes`: of all gradients and weights, as they travel. zero1 and what is above it wait
// for the last micro-step; zero2 reduces after each; zero3 gathers for each forward and backward, too.
StepTraffic step_traffic(double gradient_bytes, double weight_bytes, std::int64_t ranks, Sharding sharding,
                         std::int64_t micro_steps = 1);

}  // namespace syslab::parallel
