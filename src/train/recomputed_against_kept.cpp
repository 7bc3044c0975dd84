#include "train/recomputed_against_kept.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace syslab::train {
namespace {

std::vector<double> gradients_of(WorkloadOptions options, device::Stream stream, std::uint64_t seed) {
  options.mode = Mode::forward_backward;
  options.model.deterministic = true;  // the bits are compared
  // Phase by phase, since a graph covers a whole step, and records the same kernels.
  if (options.model.variant == model::Variant::graph) options.model.variant = model::Variant::fused;
  Workload workload(options, stream, seed);
  workload.refresh();
  workload.run();
  std::vector<double> all;
  const model::ParameterArena& arena = workload.model().parameters();
  for (int i = 0; i < arena.layout().size(); ++i) {
    const std::vector<double> one = arena.read(model::Plane::gradient, i);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

}  // namespace

StepCheck recomputed_against_kept(const WorkloadOptions& options, device::Stream stream, std::uint64_t seed) {
  WorkloadOptions small = options;
  small.config = model::reduced(options.config);
  small.config.layers = std::min(options.config.layers, std::max<std::int64_t>(2, options.model.recompute.half_blocks));
  small.batch = 2;
  small.seq = small.config.context;
  const std::vector<double> found = gradients_of(small, stream, seed);
  small.model.recompute = {};
  const std::vector<double> kept = gradients_of(small, stream, seed);
  std::int64_t others = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) others += found[i] == kept[i] ? 0 : 1;
  return {"recomputed", static_cast<double>(others), 0,
          fmt::format("elements of {} gradients with other bits than those of kept activations; {}, {}", kept.size(),
                      to_string(small.config), to_string(options.model.recompute))};
}

}  // namespace syslab::train
