// `reference`: the formulas in double precision, one loop each. The oracle of all other rungs.
#include "ops/weighted_sum/rungs.hpp"

namespace syslab::weighted_sum {
namespace {

void reference_forward(const Problem& problem, const ForwardArgs& args, ops::Workspace, device::Stream) {
  const double* x = args.x.as<double>();
  const double* w = args.w.as<double>();
  double* y = args.y.as<double>();
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    double sum = 0;
    for (std::int64_t d = 0; d < problem.dim; ++d) sum += w[d] * x[i * args.x.stride(0) + d];
    y[i * args.y.stride(0)] = sum;
  }
}

void reference_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace, device::Stream) {
  const double* x = args.x.as<double>();
  const double* w = args.w.as<double>();
  const double* dy = args.dy.as<double>();
  double* dx = args.dx.as<double>();
  double* dw = args.dw.as<double>();
  for (std::int64_t d = 0; d < problem.dim; ++d) dw[d] = 0;
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    const double g = dy[i * args.dy.stride(0)];
    for (std::int64_t d = 0; d < problem.dim; ++d) {
      dx[i * args.dx.stride(0) + d] = w[d] * g;
      dw[d] += x[i * args.x.stride(0) + d] * g;
    }
  }
}

}  // namespace

Rung reference_rung() {
  auto rung = ops::reference<Rung>();
  rung.supports = supports_dtypes(rung);
  rung.forward = reference_forward;
  rung.backward = reference_backward;
  return rung;
}

}  // namespace syslab::weighted_sum
