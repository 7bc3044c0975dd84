#include "paper/mesh_batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"

namespace syslab::parallel {
namespace {

constexpr double kBatchRounding = 1e-12;  // of times that should be equal

double number(std::int64_t value) { return static_cast<double>(value); }

double alpha(const Machine& machine) { return machine.flops_per_second / machine.link_bytes_per_second; }

// least_tokens of the mesh's links with any X and Y.
std::optional<double> least_at(const Mesh& mesh, double x, double y, std::int64_t d_ff, const Machine& machine,
                               Axes axes) {
  const double f = number(d_ff);
  // α as each axis sees it: times its bytes over the two that α counts, over all links that the axis can use.
  const double fsdp = alpha(machine) * mesh.weight_bytes / 2 / mesh.micro_batches_per_gather / number(mesh.x_links);
  const double tensor = alpha(machine) * mesh.activation_bytes / 2 / number(mesh.y_links);
  const double left = f - y * tensor;  // of computing, after the tensor axis has had its time
  if (axes == Axes::overlapped) return left >= -kBatchRounding * f ? std::optional(x * fsdp) : std::nullopt;
  return left > kBatchRounding * f ? std::optional(x * fsdp * f / left) : std::nullopt;
}

}  // namespace

void validate(const Mesh& mesh) {
  const auto require = [](const char* name, double value) {
    if (value > 0 && std::isfinite(value)) return;
    throw Error(ErrorKind::usage, fmt::format("{} is {}; a positive number is wanted", name, value));
  };
  require("x", number(mesh.x));
  require("y", number(mesh.y));
  require("x_links", number(mesh.x_links));
  require("y_links", number(mesh.y_links));
  require("weight_bytes", mesh.weight_bytes);
  require("activation_bytes", mesh.activation_bytes);
  require("micro_batches_per_gather", mesh.micro_batches_per_gather);
}

MeshTimes mesh_times(const Mesh& mesh, double tokens, std::int64_t d_model, std::int64_t d_ff, const Machine& machine) {
  const double x = number(mesh.x), y = number(mesh.y), d = number(d_model), f = number(d_ff);
  const double weights = 2 * d * f * mesh.weight_bytes / mesh.micro_batches_per_gather;  // two matrices
  const double activations = 2 * tokens * d * mesh.activation_bytes;                     // gathered, then scattered
  return {.compute = Seconds(4 * tokens * d * f / (x * y * machine.flops_per_second)),
          .fsdp = Seconds(weights / (y * machine.link_bytes_per_second * number(mesh.x_links))),
          .tensor = Seconds(activations / (x * machine.link_bytes_per_second * number(mesh.y_links)))};
}

bool is_compute_bound(const MeshTimes& times, Axes axes) {
  const Seconds sent = axes == Axes::overlapped ? std::max(times.fsdp, times.tensor) : times.fsdp + times.tensor;
  return sent <= times.compute * (1 + kBatchRounding);
}

std::optional<double> least_tokens(const Mesh& mesh, std::int64_t d_ff, const Machine& machine, Axes axes) {
  return least_at(mesh, number(mesh.x), number(mesh.y), d_ff, machine, axes);
}

std::optional<std::int64_t> least_whole_tokens(const Mesh& mesh, std::int64_t d_ff, const Machine& machine, Axes axes) {
  const std::optional<double> least = least_tokens(mesh, d_ff, machine, axes);
  if (!least) return std::nullopt;
  return std::max<std::int64_t>(1, std::llround(std::ceil(*least * (1 - kBatchRounding))));
}

std::optional<std::int64_t> least_tokens_by_search(const Mesh& mesh, std::int64_t d_ff, const Machine& machine,
                                                   Axes axes) {
  const auto bound = [&](std::int64_t tokens) {
    return is_compute_bound(mesh_times(mesh, number(tokens), 1, d_ff, machine), axes);
  };
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  std::int64_t low = 0, high = 1;  // low is not bound, high may be
  while (!bound(high)) {
    low = high;
    high *= 2;
    if (high > kMost) return std::nullopt;
  }
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (bound(middle) ? high : low) = middle;
  }
  return high;
}

double tokens_of_rounding(const Mesh& mesh, std::int64_t d_ff, const Machine& machine, Axes axes) {
  const std::optional<double> least = least_tokens(mesh, d_ff, machine, axes);
  const std::optional<double> overlapped = least_tokens(mesh, d_ff, machine, Axes::overlapped);
  if (!least || !overlapped) return 0;
  // serial / overlapped = F / (F − Y·α/M_Y): the divisor increases a relative error by this.
  return std::floor(4 * kBatchRounding * *least * (*least / *overlapped));
}

FreeSplit best_free_split(const Mesh& mesh, std::int64_t d_ff, const Machine& machine, Axes axes) {
  const double devices = number(mesh.devices()), f = number(d_ff);
  const double links = number(mesh.x_links) * number(mesh.y_links) * mesh.micro_batches_per_gather;
  FreeSplit best;
  best.tokens = (axes == Axes::overlapped ? 0.25 : 1) * devices * mesh.weight_bytes * mesh.activation_bytes *
                alpha(machine) * alpha(machine) / (links * f);
  best.x = std::sqrt(best.tokens / f * mesh.activation_bytes / mesh.weight_bytes * mesh.micro_batches_per_gather *
                     number(mesh.x_links) / number(mesh.y_links) * devices);
  best.y = devices / best.x;
  return best;
}

double free_tokens_by_search(const Mesh& mesh, std::int64_t d_ff, const Machine& machine, Axes axes) {
  constexpr int kSteps = 4000;
  constexpr double kStep = 1e-3;  // of log X
  const double middle = best_free_split(mesh, d_ff, machine, axes).x;
  double best = std::numeric_limits<double>::infinity();
  for (int step = -kSteps; step <= kSteps; ++step) {
    const double x = middle * std::exp(step * kStep);
    const auto least = least_at(mesh, x, number(mesh.devices()) / x, d_ff, machine, axes);
    best = std::min(best, least.value_or(best));
  }
  return best;
}

std::vector<WholeSplit> whole_splits(const Mesh& mesh, std::int64_t d_ff, const Machine& machine) {
  std::vector<WholeSplit> splits;
  for (std::int64_t x = 1; x <= mesh.devices(); ++x) {
    if (mesh.devices() % x != 0) continue;
    Mesh split = mesh;
    split.x = x;
    split.y = mesh.devices() / x;
    splits.push_back({x, split.y, least_whole_tokens(split, d_ff, machine, Axes::overlapped),
                      least_whole_tokens(split, d_ff, machine, Axes::serial)});
  }
  return splits;
}

}  // namespace syslab::parallel
