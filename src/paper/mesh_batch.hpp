// From how many tokens on a model of two-matmul blocks is bound by compute, on a mesh of X × Y devices: FSDP over X,
// tensor parallelism over Y, forward only. One block, B tokens in the whole mesh:
//
//   T_math = 4BDF / (XY·C)      T_fsdp = 4DF / (Y·W·M_X)      T_tensor = 4BD / (X·W·M_Y)
//
// with C operations and W bytes a second, and M_X, M_Y links that an axis can use at once; α = C/W. A gather of a shard
// from X devices is counted as one of the whole, (X − 1)/X taken for 1, as the hand-out has it.
//
//   least_tokens({.x = 16, .y = 4, .x_links = 2}, 53248, machine, Axes::overlapped);     // 20,444.4
//
// Source: hand-out 2025, communication_accounting (c) and (d), after "How to Scale Your Model" (Austin et al. 2025),
// chapter "Training".
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/text/units.hpp"
#include "paper/layer_costs.hpp"

namespace syslab::parallel {

struct Mesh {
  std::int64_t x = 16, y = 4;             // devices of the FSDP axis and of the tensor axis
  std::int64_t x_links = 1, y_links = 1;  // M_X, M_Y
  double weight_bytes = 2;                // an element of a weight on the wire
  double activation_bytes = 2;            // of an activation
  double micro_batches_per_gather = 1;    // of B tokens each, that a gathered weight serves

  std::int64_t devices() const { return x * y; }
};

// Error(usage) naming the first that is not positive.
void validate(const Mesh& mesh);

struct MeshTimes {
  Seconds compute{}, fsdp{}, tensor{};
};
MeshTimes mesh_times(const Mesh& mesh, double tokens, std::int64_t d_model, std::int64_t d_ff, const Machine& machine);
// overlapped: compute takes as long as the longer axis; serial: as long as both together.
bool is_compute_bound(const MeshTimes& times, Axes axes);

// The least B, of the whole mesh and not rounded, that is bound by compute; none where no batch is, for the time of the
// tensor axis grows with B as well. Does not depend on D.
//
//   overlapped   B ≥ X·α/M_X, if F ≥ Y·α/M_Y
//   serial       B ≥ F/(Y·M_X) / ((F/(Y·α) − 1/M_Y)/X), if the divisor is positive
std::optional<double> least_tokens(const Mesh& mesh, std::int64_t d_ff, const Machine& machine, Axes axes);
// The first whole number of tokens that is, by the formula; and by trying, with mesh_times alone.
std::optional<std::int64_t> least_whole_tokens(const Mesh& mesh, std::int64_t d_ff, const Machine& machine, Axes axes);
std::optional<std::int64_t> least_tokens_by_search(const Mesh& mesh, std::int64_t d_ff, const Machine& machine,
                                                   Axes axes);

// How far apart those two may be through rounding alone, in tokens: 0 but where the tensor axis leaves computing next
// to no time, F ≈ Y·α/M_Y, and the divisor above is a difference of nearly equal numbers.
double tokens_of_rounding(const Mesh& mesh, std::int64_t d_ff, const Machine& machine, Axes axes);

// If X and Y could be any numbers with the mesh's product N: X = √(B/F · M_X/M_Y · N), and the least B is
// N·α²/(M_X·M_Y·F) overlapped, four times that serial.
struct FreeSplit {
  double tokens = 0, x = 0, y = 0;
};
FreeSplit best_free_split(const Mesh& mesh, std::int64_t d_ff, const Machine& machine, Axes axes);
// The least B at 8001 X around that one, e^-4 to e^4 times it, by least_tokens' formula for each: a neighbour that
// beats the best split would show.
double free_tokens_by_search(const Mesh& mesh, std::int64_t d_ff, const Machine& machine, Axes axes);

// Every X that divides the mesh's devices, in ascending order, with its least whole numbers of tokens.
struct WholeSplit {
  std::int64_t x = 0, y = 0;
  std::optional<std::int64_t> overlapped, serial;
};
std::vector<WholeSplit> whole_splits(const Mesh& mesh, std::int64_t d_ff, const Machine& machine);

}  // namespace syslab::parallel
