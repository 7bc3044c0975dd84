// Values are the reference rung's. Bounds, with u the unit roundoff of what a kernel computes in (fp32, or fp64) and t
// an element of gate:
//
//   e = e^−|t|   an exponential is off, if its argument is multiplied by 1/ln 2 and rounded, by |t|·u·(1 + 1/ln 2) of
//                itself, a table or polynomial by a few units: ε = (4 + 3|t|)·u.
//   σ, 1 − σ     one of them is 1/(1 + e), off by e·ε/(1 + e) and, with the addition and a quotient by reciprocal, 4u;
//                the other, e/(1 + e), by ε and 5u besides: both within σ_ε = ε + 9u of themselves.
//   out, dup     σ·t and two more products: (σ_ε + 3u) of themselves.
//   dgate        σ·(1 + t·(1 − σ)) is a sum that cancels below t = −1.28: bounded by its terms' sizes,
//                |dout·up|·σ·(1 + |t|·(1 − σ))·(2σ_ε + 7u).
//
// Where t < −87, e is below the normal numbers and a kernel may make it 0: an absolute error of the smallest normal
// number in σ.
#include "ops/swiglu/oracle.hpp"

#include <cmath>

#include "core/rounding.hpp"

namespace syslab::swiglu {
namespace {

Problem in_fp64(Problem p) {
  p.dtype = DType::f64;
  return p;
}

ConstTensorView view_of(const std::vector<double>& values, const Shape& shape) {
  return {values.data(), DType::f64, shape};
}
TensorView view_of(std::vector<double>& values, const Shape& shape) { return {values.data(), DType::f64, shape}; }

struct Units {
  DType dtype;
  DType carrier = dtype == DType::f64 ? DType::f64 : DType::f32;
  double u = unit_roundoff(carrier), normal = smallest_normal(carrier);

  double of_sigma(double t) const { return (4 + 3 * std::abs(t)) * u + 9 * u; }
  // An error in the carrier, and the last rounding.
  double stored(double value, double error) const {
    const double unit = unit_roundoff(dtype);
    return error + (unit > u ? unit * (std::abs(value) + error) : 0.0) + 4 * smallest_normal(dtype) * unit;
  }
};

}  // namespace

Expected forward_oracle(const Problem& p, const ConstTensorView& gate, const ConstTensorView& up) {
  const Shape matrix{p.rows, p.dim};
  const std::vector<double> ts = to_doubles(gate), us = to_doubles(up);
  Expected out{std::vector<double>(ts.size()), {}};
  find_rung("reference")
      .forward(in_fp64(p), {view_of(ts, matrix), view_of(us, matrix), view_of(out.value, matrix)}, {}, {});
  const Units units{p.dtype};
  for (std::size_t i = 0; i < ts.size(); ++i) {
    const double relative = units.of_sigma(ts[i]) + 3 * units.u;
    out.tolerance.push_back(units.stored(
        out.value[i],
        relative * std::abs(out.value[i]) + 2 * units.normal * (1 + std::abs(ts[i])) * (1 + std::abs(us[i]))));
  }
  return out;
}

BackwardOracle backward_oracle(const Problem& p, const ConstTensorView& gate, const ConstTensorView& up,
                               const ConstTensorView& dout) {
  const Shape matrix{p.rows, p.dim};
  const std::vector<double> ts = to_doubles(gate), us = to_doubles(up), gs = to_doubles(dout);
  BackwardOracle found{{std::vector<double>(ts.size()), {}}, {std::vector<double>(ts.size()), {}}};
  find_rung("reference")
      .backward(in_fp64(p),
                {view_of(ts, matrix),
                 view_of(us, matrix),
                 view_of(gs, matrix),
                 view_of(found.dgate.value, matrix),
                 view_of(found.dup.value, matrix),
                 {}},
                {}, {});
  const Units units{p.dtype};
  for (std::size_t i = 0; i < ts.size(); ++i) {
    const double t = std::abs(ts[i]), g = std::abs(gs[i]), u = std::abs(us[i]);
    const double e = std::exp(-t), larger = 1 / (1 + e), smaller = e / (1 + e);
    const double at = ts[i] >= 0 ? larger : smaller, beside = ts[i] >= 0 ? smaller : larger;
    const double of_sigma = units.of_sigma(t), underflow = 2 * units.normal * (1 + t) * (1 + g) * (1 + u);
    found.dup.tolerance.push_back(
        units.stored(found.dup.value[i], (of_sigma + 3 * units.u) * std::abs(found.dup.value[i]) + underflow));
    const double size = g * u * at * (1 + t * beside);
    found.dgate.tolerance.push_back(
        units.stored(found.dgate.value[i], (2 * of_sigma + 7 * units.u) * size + (1 + t) * underflow));
  }
  return found;
}

}  // namespace syslab::swiglu
