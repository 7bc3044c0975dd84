#include "paper/layer_answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "core/error.hpp"
#include "paper/layer_walk.hpp"

namespace syslab::parallel {
namespace {

constexpr double kRecountRounding = 1e-9;  // of a few operations in fp64, with room
constexpr std::int64_t kMostWalked = 64;
constexpr std::int64_t kMostTried = 100000;
constexpr double kMostCounted = 1e15;  // doubles count them one by one

using CostsOf = std::function<PassCosts(const GatedLayer&, const Grid&, Pass)>;

CostsOf costs_of(Layout layout) {
  if (layout != Layout::data_parallel) return sharded_costs;
  return [](const GatedLayer& layer, const Grid& grid, Pass pass) {
    return data_parallel_costs(layer, grid.ranks(), pass);
  };
}

const char* name_of(Pass pass) { return pass == Pass::forward ? "forward" : "backward"; }
const char* name_of(Axes axes) { return axes == Axes::overlapped ? "overlapped" : "serial"; }

double limit_of(Layout layout, const GatedLayer& layer, const Machine& machine, Pass pass) {
  if (layout == Layout::data_parallel) return data_parallel_limit(layer, machine, pass);
  return layout == Layout::fsdp ? fsdp_limit(layer, machine) : tensor_parallel_limit(layer, machine, pass);
}

// The largest whole number within a limit; a limit that is whole except for rounding counts as whole.
std::int64_t whole(double limit) { return std::llround(std::floor(limit * (1 + 1e-12))); }

Grid walked(Grid grid) {
  if (grid.ranks() <= kMostWalked) return grid;
  if (grid.tensor == 1) return {kMostWalked, 1};
  if (grid.data == 1) return {1, kMostWalked};
  return {std::min<std::int64_t>(grid.data, 8), std::min<std::int64_t>(grid.tensor, 8)};
}

void recount_costs(std::vector<Recount>& recounts, Layout layout, const Grid& asked) {
  const Grid grid = walked(asked);
  const GatedLayer layer = walkable_layer(grid);
  const LayerWalk walk =
      walk_layer(layer, grid, layout == Layout::data_parallel ? Scheme::data_parallel : Scheme::sharded);
  const std::string where = fmt::format("a layer of {} × {} × {} on {} × {} ranks", layer.tokens, layer.d_model,
                                        layer.d_ff, grid.data, grid.tensor);
  recounts.push_back(
      {"reference:gradients", static_cast<double>(walk.wrong), 0, 0,
       fmt::format("of {} outputs and derivatives of {} so many differ from the whole layer's", walk.compared, where)});
  const CostsOf costs = costs_of(layout);
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    const PassCosts& counted = pass == Pass::forward ? walk.forward : walk.backward;
    const PassCosts formula = costs(layer, grid, pass);
    const double sent = formula.data_sent_bytes + formula.tensor_sent_bytes;
    recounts.push_back({fmt::format("reference:{}_flops", name_of(pass)), counted.flops, formula.flops,
                        kRecountRounding * formula.flops, "operations of a rank, counted in " + where});
    recounts.push_back({fmt::format("reference:{}_bytes", name_of(pass)),
                        counted.data_sent_bytes + counted.tensor_sent_bytes, sent, kRecountRounding * sent,
                        "bytes that a rank sends, counted in " + where});
  }
}

// The largest n that is bound by compute: doubling, then bisection.
std::int64_t largest_by_trying(const std::function<bool(std::int64_t)>& is_bound) {
  std::int64_t low = 1, high = 2;
  while (is_bound(high)) low = std::exchange(high, 2 * high);
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (is_bound(middle) ? low : high) = middle;
  }
  return low;
}

void answer_line(LayerAnswer& answer, Layout layout, const GatedLayer& layer, const Machine& machine, Pass pass) {
  const double limit = limit_of(layout, layer, machine, pass);
  if (std::isinf(limit)) return;
  if (limit > kMostCounted) {
    throw Error(ErrorKind::usage,
                fmt::format("up to {:.3g} devices are bound by compute, more than can be counted; choose fewer tokens, "
                            "or rates nearer to each other",
                            limit));
  }
  answer.numbers.push_back({fmt::format("{}_limit", name_of(pass)), "1", limit});
  const CostsOf costs = costs_of(layout);
  const std::int64_t found = largest_by_trying([&](std::int64_t n) {
    const Grid line = layout == Layout::tensor_parallel ? Grid{1, n} : Grid{n, 1};
    return is_compute_bound(costs(layer, line, pass), machine, Axes::serial);
  });
  answer.recounts.push_back({fmt::format("reference:{}_limit", name_of(pass)), static_cast<double>(found),
                             static_cast<double>(whole(limit)), 0,
                             "the most devices that are bound by compute, by trying"});
}

void answer_grid(LayerAnswer& answer, const GatedLayer& layer, const Machine& machine, Pass pass, Axes axes) {
  const SplitLimit limit = largest_split(layer, machine, pass, axes);
  const std::string name = fmt::format("{}_limit_{}", name_of(pass), name_of(axes));
  answer.numbers.push_back({name, "1", limit.ranks});
  answer.numbers.push_back({name + "_data", "1", limit.data});
  answer.numbers.push_back({name + "_tensor", "1", limit.tensor});

  const double data = fsdp_limit(layer, machine), tensor = tensor_parallel_limit(layer, machine, pass);
  if (data <= static_cast<double>(kMostTried)) {
    const Grid grid = largest_grid(layer, machine, pass, axes, whole(data));
    const std::string tried = fmt::format("{}_grid_{}", name_of(pass), name_of(axes));
    answer.numbers.push_back({tried + "_data", "1", static_cast<double>(grid.data)});
    answer.numbers.push_back({tried + "_tensor", "1", static_cast<double>(grid.tensor)});
    const auto found = static_cast<double>(grid.ranks());
    if (axes == Axes::overlapped) {
      answer.recounts.push_back({"reference:" + tried, found, static_cast<double>(whole(data) * whole(tensor)), 0,
                                 "the most ranks of a grid that is bound by compute, by trying"});
    } else {
      answer.recounts.push_back({"reference:" + tried, std::max(0.0, found - limit.ranks), 0,
                                 kRecountRounding * limit.ranks,
                                 "ranks of the largest grid, by trying, above the formula"});
    }
  }
  // The best of so many splits of the time to communicate between the axes. Between two of them the product, a parabola
  // in the share with curvature 2αβ, rises by αβ/(4·steps²) at most.
  constexpr int kSteps = 10000;
  double best = 0;
  for (int step = 0; step <= kSteps; ++step) {
    const double share = static_cast<double>(step) / kSteps;
    const double other = axes == Axes::overlapped ? 1 : 1 - share;
    best = std::max(best, (1 + (data - 1) * share) * (1 + (tensor - 1) * other));
  }
  answer.recounts.push_back({"reference:" + name, best, limit.ranks,
                             kRecountRounding * limit.ranks + (data - 1) * (tensor - 1) / (4.0 * kSteps * kSteps),
                             fmt::format("the largest product of both axes over {} splits of the time", kSteps + 1)});
}

}  // namespace

LayerAnswer answer_layer(Layout layout, const GatedLayer& layer, const Grid& grid, const Machine& machine) {
  validate(layer);
  validate(machine);
  LayerAnswer answer;
  const bool two_axes = layout == Layout::fsdp_tensor;
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    const PassCosts costs = costs_of(layout)(layer, grid, pass);
    const std::string name = name_of(pass);
    answer.numbers.push_back({name + "_flops", "1", costs.flops});
    answer.numbers.push_back({name + "_compute", "s", compute_time(costs, machine).count()});
    answer.numbers.push_back({name + "_sent_bytes", "B", costs.data_sent_bytes + costs.tensor_sent_bytes});
    if (!two_axes) {
      answer.numbers.push_back(
          {name + "_communication", "s", communication_time(costs, machine, Axes::serial).count()});
      answer_line(answer, layout, layer, machine, pass);
      continue;
    }
    answer.numbers.push_back({name + "_data_sent_bytes", "B", costs.data_sent_bytes});
    answer.numbers.push_back({name + "_tensor_sent_bytes", "B", costs.tensor_sent_bytes});
    for (const Axes axes : {Axes::overlapped, Axes::serial}) {
      answer.numbers.push_back({fmt::format("{}_communication_{}", name, name_of(axes)), "s",
                                communication_time(costs, machine, axes).count()});
      answer_grid(answer, layer, machine, pass, axes);
    }
  }
  recount_costs(answer.recounts, layout, grid);
  return answer;
}

std::vector<Axis> layer_param_list() {
  const auto number = [](std::int64_t value) { return Value(value); };
  return {{"tokens", {number(4096), number(65536), number(1048576)}, "B, rows of x in the whole batch", false, {}},
          {"d_model", {number(4096)}, "D, columns of x", false, {}},
          {"d_ff", {number(11008)}, "F, the hidden dimension", false, {}},
          {"element_bytes", {number(2)}, "of an element on the wire", false, {}},
          {"compute_tflops", {460.0}, "C, 10^12 operations a second of one device", false, {}},
          {"link_gbps", {180.0}, "W, 10^9 bytes a second out of one device", false, {}}};
}

GatedLayer layer_from(const Params& params) {
  return {.tokens = params.integer("tokens"),
          .d_model = params.integer("d_model"),
          .d_ff = params.integer("d_ff"),
          .element_bytes = params.integer("element_bytes")};
}

Machine machine_from(const Params& params) {
  return {.flops_per_second = 1e12 * params.number("compute_tflops"),
          .link_bytes_per_second = 1e9 * params.number("link_gbps")};
}

}  // namespace syslab::parallel
