// `reference`: one running sum in double precision.
#include "ops/global_norm/rungs.hpp"

namespace syslab::global_norm {
namespace {

void norm(const Problem& problem, const NormArgs& args, ops::Workspace, device::Stream) {
  const double* g = args.g.as<double>();
  double sum = 0;
  std::int64_t non_finite = 0;
  for (std::int64_t i = 0; i < problem.elements; ++i) {
    sum += g[i] * g[i];
    non_finite += std::isfinite(g[i]) ? 0 : 1;
  }
  const double scale = args.grad_scale.data == nullptr ? 1.0 : args.grad_scale.as<double>()[0];
  const double found = scale * std::sqrt(sum);
  args.norm.as<double>()[0] = found;
  args.factor.as<double>()[0] = clip_factor(found, args.max_norm);
  if (args.non_finite != nullptr) *args.non_finite = non_finite + (args.add_to_count ? *args.non_finite : 0);
}

void scale(const Problem& problem, const ScaleArgs& args, device::Stream) {
  double* g = args.g.as<double>();
  const double factor = args.factor.as<double>()[0];
  for (std::int64_t i = 0; i < problem.elements; ++i) g[i] *= factor;
}

}  // namespace

Rung reference_rung() {
  auto rung = ops::reference<Rung>("one running sum of squares in double precision: what the others must equal");
  rung.supports = supports_dtypes(rung);
  rung.workspace_bytes = [](const Problem&) -> std::size_t { return 0; };
  rung.norm = norm;
  rung.scale = scale;
  return rung;
}

}  // namespace syslab::global_norm
