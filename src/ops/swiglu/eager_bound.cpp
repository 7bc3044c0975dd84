// What rounding after every operation adds, with u the unit roundoff of the tensors' dtype and σ the sigmoid:
//
//   out     σ and silu are rounded too: 2u|out|.
//   dup     the same two: 2u|dup|.
//   dgate   t₁ = ds·σ, t₂ = (ds·gate)·(1 − σ)·σ with ds = dout·up. Of t₁: ds, σ and the product, 3u|t₁|. Of t₂: ds,
//           ds·gate, σ and the product, 4u|t₂|; and 1 − σ inherits uσ from σ, which is large compared with 1 − σ if σ
//           is nearly 1: uσ·|ds·gate|σ.
//
// Second orders are covered by (1 + 8u); each rounding below the normal numbers adds half a unit of their grid.
#include <cmath>
#include <vector>

#include "ops/swiglu/eager.hpp"

namespace syslab::swiglu {
namespace {

struct EagerUnits {
  double unit, tiny;
  explicit EagerUnits(DType dtype) : unit(unit_roundoff(dtype)), tiny(smallest_normal(dtype) * unit_roundoff(dtype)) {}
  double grown(double first_order) const { return (1 + 8 * unit) * unit * first_order; }
};

}  // namespace

void eager_allow(const Problem& p, const ConstTensorView& gate, const ConstTensorView& up, Expected& out) {
  const EagerUnits units(p.dtype);
  const std::vector<double> gates = to_doubles(gate), ups = to_doubles(up);
  for (std::size_t i = 0; i < gates.size(); ++i) {
    const double tiny = (1 + std::abs(ups[i]) * (1 + std::abs(gates[i]))) * units.tiny;
    out.tolerance[i] += units.grown(2 * std::abs(out.value[i])) + tiny;
  }
}

void eager_allow(const Problem& p, const ConstTensorView& gate, const ConstTensorView& up, const ConstTensorView& dout,
                 BackwardOracle& expected) {
  const EagerUnits units(p.dtype);
  const std::vector<double> gates = to_doubles(gate), ups = to_doubles(up), douts = to_doubles(dout);
  for (std::size_t i = 0; i < gates.size(); ++i) {
    const double sigmoid = 1 / (1 + std::exp(-gates[i])), ds = std::abs(douts[i] * ups[i]);
    const double a = ds * std::abs(gates[i]), first = ds * sigmoid, second = a * (1 - sigmoid) * sigmoid;
    const double tiny = (5 + ds + std::abs(gates[i]) + a) * units.tiny;
    const double tiny_of_dup = (1 + std::abs(douts[i]) * (1 + std::abs(gates[i]))) * units.tiny;
    expected.dup.tolerance[i] += units.grown(2 * std::abs(expected.dup.value[i])) + tiny_of_dup;
    expected.dgate.tolerance[i] += units.grown(3 * first + 4 * second + a * sigmoid * sigmoid) + tiny;
  }
}

}  // namespace syslab::swiglu
