// `reference`: the formulas in double precision, one loop each. The oracle of all other rungs.
#include <cmath>

#include "ops/rms_norm/rungs.hpp"

namespace syslab::rms_norm {
namespace {

void reference_forward(const Problem& p, const ForwardArgs& args, ops::Workspace, device::Stream) {
  const double* w = args.w.as<double>();
  for (std::int64_t i = 0; i < p.rows; ++i) {
    const double* h = args.x.as<double>() + i * args.x.stride(0);
    if (p.add) {
      const double* delta = args.delta.as<double>() + i * args.delta.stride(0);
      double* sum = args.h.as<double>() + i * args.h.stride(0);
      for (std::int64_t d = 0; d < p.dim; ++d) sum[d] = h[d] + delta[d];
      h = sum;
    }
    double squares = 0;
    for (std::int64_t d = 0; d < p.dim; ++d) squares += h[d] * h[d];
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(p.dim) + p.eps);
    args.rstd.as<double>()[i] = rstd;
    double* y = args.y.as<double>() + i * args.y.stride(0);
    for (std::int64_t d = 0; d < p.dim; ++d) y[d] = w[d] * (h[d] * rstd);
  }
}

void reference_backward(const Problem& p, const BackwardArgs& args, ops::Workspace, device::Stream) {
  const double* w = args.w.as<double>();
  double* dw = args.dw.as<double>();
  for (std::int64_t d = 0; d < p.dim && !args.accumulate; ++d) dw[d] = 0;
  for (std::int64_t i = 0; i < p.rows; ++i) {
    const double* dy = args.dy.as<double>() + i * args.dy.stride(0);
    const double* h = args.h.as<double>() + i * args.h.stride(0);
    const double* dh = args.dh.data == nullptr ? nullptr : args.dh.as<double>() + i * args.dh.stride(0);
    double* dx = args.dx.as<double>() + i * args.dx.stride(0);
    const double rstd = args.rstd.as<double>()[i];
    double products = 0;
    for (std::int64_t d = 0; d < p.dim; ++d) products += w[d] * dy[d] * (h[d] * rstd);
    const double c = products / static_cast<double>(p.dim);
    for (std::int64_t d = 0; d < p.dim; ++d) {
      const double normed = h[d] * rstd;
      dw[d] += dy[d] * normed;
      dx[d] = (dh == nullptr ? 0 : dh[d]) + rstd * (w[d] * dy[d] - normed * c);
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

}  // namespace syslab::rms_norm
