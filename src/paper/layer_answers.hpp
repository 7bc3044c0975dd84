// What the calculators tell of one layer under one layout: named numbers, and the same things counted in other ways.
//
//   const LayerAnswer answer = answer_layer(Layout::fsdp, layer, {8, 1}, machine);
//   for (const Number& one : answer.numbers) …      // forward_flops, forward_compute, limit, …
//   for (const Recount& one : answer.recounts) …    // "reference:gradients", "reference:bytes", "reference:limit"
#pragma once

#include <string>
#include <vector>

#include "contract/axis.hpp"
#include "core/value.hpp"
#include "paper/layer_costs.hpp"

namespace syslab::parallel {

enum class Layout { data_parallel, fsdp, tensor_parallel, fsdp_tensor };

struct Number {
  std::string name, unit;
  double value = 0;
};

// Right where `found` is within `tolerance` of `expected`.
struct Recount {
  std::string name;
  double found = 0, expected = 0, tolerance = 0;
  std::string how;
};

struct LayerAnswer {
  std::vector<Number> numbers;
  std::vector<Recount> recounts;
};

// Numbers, by pass ("forward_…", "backward_…"): flops and sent_bytes of a device, compute and communication in seconds,
// limit, the largest number of devices that is bound by compute (none for data parallel in forward, which nothing
// bounds). Of a grid data_sent_bytes, tensor_sent_bytes, and communication and limit for both readings, "_overlapped"
// and "_serial", with the best split (limit_…_data, limit_…_tensor) and the largest whole grid (grid_…_data,
// grid_…_tensor).
//
// The recounts walk a small layer over the same grid, or over 64 ranks of it where it is larger (layer_walk.hpp), and
// look for the limits by trying.
LayerAnswer answer_layer(Layout layout, const GatedLayer& layer, const Grid& grid, const Machine& machine);

// The parameters of a case that these two read: tokens, d_model, d_ff, element_bytes; compute_tflops, link_gbps. The
// defaults are ours: the hand-out has symbols only. Rates are those of the hand-out of 2025.
std::vector<Axis> layer_param_list();
GatedLayer layer_from(const Params& params);
Machine machine_from(const Params& params);

}  // namespace syslab::parallel
