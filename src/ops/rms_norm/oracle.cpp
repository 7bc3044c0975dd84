// Values are the reference rung's. Bounds, with u the unit roundoff of what a kernel computes in (fp32, or fp64) and
// v_x, v_y those of the stored dtypes (0 for u's own dtype, as its rounding is already counted):
//
//   h     one addition and one store: (u + v_x)·|h|.
//   rstd  every h_d, exact or off by η = u + v_x of itself, enters a sum of `dim` positive terms: the mean is off by at
//         most 2η + γ(dim + 2) of itself; the root halves that, and root, division and reciprocal (a GPU's is off by up
//         to two units) add 4u: ε_r = η + γ(dim + 2)/2 + 4u.
//   y     three factors and two products: (η + ε_r + 2u)·|y|, and the store's v_y·|y|.
//   dx    n = dim: c is a sum of n terms of three products and one division, γ(n + 5)·C with C = mean|g·h·rstd|; the
//         rest touches each part at most five more times: (γ(n + 5) + 5u)·rstd·(|g| + |h·rstd|·C), the addition of dh
//         u·(|dh| + …), and the store.
//   dw    a sum over the rows of terms of two products each, γ(rows + 4)·Σ|dy·h·rstd|, with what dw held before among
//   them.
//
// Underflow adds half a unit of the subnormal grid a rounding.
#include "ops/rms_norm/oracle.hpp"

#include <algorithm>
#include <cmath>

#include "core/rounding.hpp"

namespace syslab::rms_norm {
namespace {

std::vector<double> absolute(std::vector<double> values) {
  std::transform(values.begin(), values.end(), values.begin(), [](double value) { return std::abs(value); });
  return values;
}

// A sum of n numbers in any order: the smaller of the certain bound and the probable one.
double of_sum(std::int64_t n, double unit) { return std::min(gamma(n, unit), gamma_probable(n, unit)); }

struct Units {
  double u, tiny;

  explicit Units(const Problem& p)
      : u(unit_roundoff(p.statistics())), tiny(smallest_normal(p.statistics()) * unit_roundoff(p.statistics())) {}
  // The rounding of a `value` when it is stored, if it already has an `error`.
  double stored(DType dtype, double value, double error) const {
    const double unit = unit_roundoff(dtype);
    return (unit > u ? unit * (std::abs(value) + error) : 0.0) + smallest_normal(dtype) * unit;
  }
};

std::vector<double> values_of(const ConstTensorView& view) {
  return view.data == nullptr ? std::vector<double>{} : to_doubles(view);
}

ConstTensorView view_of(const std::vector<double>& values, const Shape& shape) {
  if (values.empty()) return {};
  return {values.data(), DType::f64, shape};
}

Problem in_fp64(Problem p) {
  p.x_dtype = p.w_dtype = p.y_dtype = DType::f64;
  return p;
}

}  // namespace

ForwardOracle forward_oracle(const Problem& p, const ConstTensorView& x, const ConstTensorView& delta,
                             const ConstTensorView& w) {
  const Shape matrix{p.rows, p.dim};
  const std::vector<double> xs = to_doubles(x), deltas = values_of(delta), ws = to_doubles(w);
  ForwardOracle found;
  found.y.value.resize(xs.size());
  found.rstd.value.resize(static_cast<std::size_t>(p.rows));
  if (p.add) found.h.value.resize(xs.size());
  const TensorView h = p.add ? TensorView(found.h.value.data(), DType::f64, matrix) : TensorView{};
  find_rung("reference")
      .forward(in_fp64(p),
               {view_of(xs, matrix), view_of(deltas, matrix), view_of(ws, {p.dim}), h,
                TensorView(found.y.value.data(), DType::f64, matrix),
                TensorView(found.rstd.value.data(), DType::f64, {p.rows})},
               {}, {});

  const Units units(p);
  const double rounding_of_h =
      p.add ? units.u + (size_of(p.x_dtype) < 4 ? unit_roundoff(p.x_dtype) * (1 + units.u) : 0) : 0;
  const double of_rstd = rounding_of_h * (1 + rounding_of_h) + of_sum(p.dim + 2, units.u) / 2 + 4 * units.u;
  for (const double value : found.h.value) {
    found.h.tolerance.push_back(units.u * std::abs(value) + units.tiny +
                                units.stored(p.x_dtype, value, units.u * std::abs(value)));
  }
  for (const double value : found.rstd.value) found.rstd.tolerance.push_back(of_rstd * value + units.tiny);
  const double of_y = (1 + rounding_of_h) * (1 + of_rstd) * (1 + 2 * units.u) * (1 + units.u) - 1;
  for (std::size_t i = 0; i < found.y.value.size(); ++i) {
    const double value = found.y.value[i], error = of_y * std::abs(value) + 2 * units.tiny;
    // If h is subnormal, its rounding error is absolute, and is multiplied by rstd and w.
    const double grown = p.add ? smallest_normal(p.x_dtype) * unit_roundoff(p.x_dtype) *
                                     found.rstd.value[i / static_cast<std::size_t>(p.dim)] *
                                     std::abs(ws[i % static_cast<std::size_t>(p.dim)])
                               : 0;
    found.y.tolerance.push_back(error + grown + units.stored(p.y_dtype, value, error));
  }
  return found;
}

BackwardOracle backward_oracle(const Problem& p, const ConstTensorView& dy, const ConstTensorView& h,
                               const ConstTensorView& w, const ConstTensorView& rstd, const ConstTensorView& dh,
                               const ConstTensorView& before) {
  const Shape matrix{p.rows, p.dim};
  const std::vector<double> dys = to_doubles(dy), hs = to_doubles(h), ws = to_doubles(w), rstds = to_doubles(rstd),
                            dhs = values_of(dh), held = values_of(before);
  BackwardOracle found;
  found.dx.value.resize(dys.size());
  found.dw.value.assign(held.begin(), held.end());
  found.dw.value.resize(ws.size());
  find_rung("reference")
      .backward(in_fp64(p),
                {view_of(dys, matrix), view_of(hs, matrix), view_of(ws, {p.dim}), view_of(rstds, {p.rows}),
                 view_of(dhs, matrix), TensorView(found.dx.value.data(), DType::f64, matrix),
                 TensorView(found.dw.value.data(), DType::f64, {p.dim}), !held.empty()},
                {}, {});

  const Units units(p);
  const double of_c = of_sum(p.dim + 5, units.u) + 5 * units.u, of_dw = of_sum(p.rows + 4, units.u);
  std::vector<double> sizes = absolute(held);
  sizes.resize(ws.size());
  for (std::int64_t row = 0; row < p.rows; ++row) {
    const auto first = static_cast<std::size_t>(row * p.dim), columns = static_cast<std::size_t>(p.dim);
    const double r = std::abs(rstds[static_cast<std::size_t>(row)]);
    double c = 0;
    for (std::size_t d = 0; d < columns; ++d) {
      const double term = std::abs(dys[first + d] * hs[first + d]) * r;
      c += std::abs(ws[d]) * term;
      sizes[d] += term;
    }
    c /= static_cast<double>(p.dim);
    for (std::size_t d = 0; d < columns; ++d) {
      const double normed = std::abs(hs[first + d]) * r, value = found.dx.value[first + d];
      const double norm_part = r * (std::abs(ws[d] * dys[first + d]) + normed * c);
      double error = of_c * norm_part + (6 + 2 * r + 2 * r * normed) * units.tiny;
      if (!dhs.empty()) error += units.u * (std::abs(dhs[first + d]) + (1 + of_c) * norm_part);
      found.dx.tolerance.push_back(error + units.stored(p.x_dtype, value, error));
    }
  }
  const double underflow = static_cast<double>(2 * p.rows + 2) * units.tiny;
  for (const double size : sizes) found.dw.tolerance.push_back(of_dw * size + underflow);
  return found;
}

}  // namespace syslab::rms_norm
