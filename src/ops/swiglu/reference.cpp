// `reference`: the formulas in double precision. The oracle of all other rungs.
#include <cmath>

#include "ops/swiglu/rungs.hpp"

namespace syslab::swiglu {
namespace {

// σ(t) and 1 − σ(t), each from an exponential that cannot overflow and without a difference that cancels.
struct ExactSigmoid {
  double at, beside;

  explicit ExactSigmoid(double t) {
    const double e = std::exp(-std::abs(t)), larger = 1 / (1 + e), smaller = e / (1 + e);
    at = t >= 0 ? larger : smaller;
    beside = t >= 0 ? smaller : larger;
  }
};

void reference_forward(const Problem& p, const ForwardArgs& args, ops::Workspace, device::Stream) {
  for (std::int64_t i = 0; i < p.rows; ++i) {
    const double* gate = args.gate.as<double>() + i * args.gate.stride(0);
    const double* up = args.up.as<double>() + i * args.up.stride(0);
    double* out = args.out.as<double>() + i * args.out.stride(0);
    for (std::int64_t d = 0; d < p.dim; ++d) out[d] = gate[d] * ExactSigmoid(gate[d]).at * up[d];
  }
}

void reference_backward(const Problem& p, const BackwardArgs& args, ops::Workspace, device::Stream) {
  for (std::int64_t i = 0; i < p.rows; ++i) {
    const double* gate = args.gate.as<double>() + i * args.gate.stride(0);
    const double* up = args.up.as<double>() + i * args.up.stride(0);
    const double* dout = args.dout.as<double>() + i * args.dout.stride(0);
    double* dgate = args.dgate.as<double>() + i * args.dgate.stride(0);
    double* dup = args.dup.as<double>() + i * args.dup.stride(0);
    double* out = args.out.data == nullptr ? nullptr : args.out.as<double>() + i * args.out.stride(0);
    for (std::int64_t d = 0; d < p.dim; ++d) {
      const double t = gate[d], u = up[d], g = dout[d];
      const ExactSigmoid sigma(t);
      dgate[d] = g * u * (sigma.at * (1 + t * sigma.beside));
      dup[d] = g * (t * sigma.at);
      if (out != nullptr) out[d] = t * sigma.at * u;
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

}  // namespace syslab::swiglu
