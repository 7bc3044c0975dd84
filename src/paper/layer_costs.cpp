#include "paper/layer_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "paper/ring_costs.hpp"

namespace syslab::parallel {
namespace {

// Times that should be equal differ by a few roundings, each of 2^-53.
constexpr double kTimeRounding = 1e-12;

double weight_count(const GatedLayer& layer) {
  return 3 * static_cast<double>(layer.d_model) * static_cast<double>(layer.d_ff);
}

double product_flops(const GatedLayer& layer, Pass pass) {
  return (pass == Pass::forward ? 2 : 4) * static_cast<double>(layer.tokens) * weight_count(layer);
}

// α and β of the header: seconds of computing the whole pass over those of sending once what an axis sends.
double data_ratio(const GatedLayer& layer, const Machine& machine) {
  return 2 * static_cast<double>(layer.tokens) * machine.link_bytes_per_second /
         (static_cast<double>(layer.element_bytes) * machine.flops_per_second);
}

double tensor_ratio(const GatedLayer& layer, const Machine& machine, Pass pass) {
  return (pass == Pass::forward ? 3 : 6) * static_cast<double>(layer.d_ff) * machine.link_bytes_per_second /
         (static_cast<double>(layer.element_bytes) * machine.flops_per_second);
}

}  // namespace

void validate(const Grid& grid) {
  if (grid.data >= 1 && grid.tensor >= 1) return;
  throw Error(ErrorKind::usage,
              fmt::format("a grid of {} × {} ranks; at least 1 × 1 is wanted", grid.data, grid.tensor));
}

void validate(const GatedLayer& layer) {
  const auto require = [](const char* name, std::int64_t size) {
    if (size < 1) throw Error(ErrorKind::usage, fmt::format("{} is {}; at least 1 is wanted", name, size));
  };
  require("tokens", layer.tokens);
  require("d_model", layer.d_model);
  require("d_ff", layer.d_ff);
  require("element_bytes", layer.element_bytes);
}

void validate(const Machine& machine) {
  const auto require = [](const char* name, double rate) {
    if (rate > 0 && std::isfinite(rate)) return;
    throw Error(ErrorKind::usage, fmt::format("{} is {}; a positive number is wanted", name, rate));
  };
  require("the rate of computing", machine.flops_per_second);
  require("the rate of the link", machine.link_bytes_per_second);
}

PassCosts data_parallel_costs(const GatedLayer& layer, std::int64_t ranks, Pass pass) {
  validate(layer);
  const double gradients = weight_count(layer) * static_cast<double>(layer.element_bytes);
  return {.flops = product_flops(layer, pass) / static_cast<double>(ranks),
          .data_sent_bytes = ring_all_reduce_sent(pass == Pass::backward ? gradients : 0, ranks)};
}

PassCosts sharded_costs(const GatedLayer& layer, const Grid& grid, Pass pass) {
  validate(layer);
  validate(grid);
  const auto bytes = static_cast<double>(layer.element_bytes);
  const double weights = bytes * weight_count(layer) / static_cast<double>(grid.tensor);
  const double activations =
      bytes * static_cast<double>(layer.tokens) * static_cast<double>(layer.d_model) / static_cast<double>(grid.data);
  const double scattered = pass == Pass::backward ? ring_reduce_scatter_sent(weights, grid.data) : 0;
  return {.flops = product_flops(layer, pass) / static_cast<double>(grid.ranks()),
          .data_sent_bytes = ring_all_gather_sent(weights, grid.data) + scattered,
          .tensor_sent_bytes = ring_all_reduce_sent(activations, grid.tensor)};
}

Seconds compute_time(const PassCosts& costs, const Machine& machine) {
  return Seconds(costs.flops / machine.flops_per_second);
}

Seconds communication_time(const PassCosts& costs, const Machine& machine, Axes axes) {
  const double sent = axes == Axes::overlapped ? std::max(costs.data_sent_bytes, costs.tensor_sent_bytes)
                                               : costs.data_sent_bytes + costs.tensor_sent_bytes;
  return Seconds(sent / machine.link_bytes_per_second);
}

bool is_compute_bound(const PassCosts& costs, const Machine& machine, Axes axes) {
  return communication_time(costs, machine, axes) <= compute_time(costs, machine) * (1 + kTimeRounding);
}

double data_parallel_limit(const GatedLayer& layer, const Machine& machine, Pass pass) {
  if (pass == Pass::forward) return std::numeric_limits<double>::infinity();
  return 1 + data_ratio(layer, machine);
}

double fsdp_limit(const GatedLayer& layer, const Machine& machine) { return 1 + data_ratio(layer, machine); }

double tensor_parallel_limit(const GatedLayer& layer, const Machine& machine, Pass pass) {
  return 1 + tensor_ratio(layer, machine, pass);
}

SplitLimit largest_split(const GatedLayer& layer, const Machine& machine, Pass pass, Axes axes) {
  const double a = data_ratio(layer, machine), b = tensor_ratio(layer, machine, pass);
  const auto split = [](double data, double tensor) { return SplitLimit{data * tensor, data, tensor}; };
  if (axes == Axes::overlapped) return split(1 + a, 1 + b);
  const double data = (a + b + a * b) / (2 * b), tensor = (a + b + a * b) / (2 * a);
  if (data < 1) return split(1, 1 + b);
  if (tensor < 1) return split(1 + a, 1);
  return split(data, tensor);
}

Grid largest_grid(const GatedLayer& layer, const Machine& machine, Pass pass, Axes axes, std::int64_t most_data) {
  Grid best;
  const auto fits = [&](const Grid& grid) { return is_compute_bound(sharded_costs(layer, grid, pass), machine, axes); };
  // A longer axis never sends less of what a device computes: along each, what fits comes first.
  for (Grid grid; grid.data <= most_data && fits({grid.data, 1}); ++grid.data) {
    std::int64_t low = 1, high = 2;
    while (fits({grid.data, high})) low = std::exchange(high, 2 * high);
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (fits({grid.data, middle}) ? low : high) = middle;
    }
    grid.tensor = low;
    if (grid.ranks() > best.ranks()) best = grid;
  }
  return best;
}

}  // namespace syslab::parallel
