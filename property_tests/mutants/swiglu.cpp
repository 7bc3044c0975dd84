#include "property_tests/mutants/swiglu.hpp"

#include <algorithm>
#include <cmath>

#include "property_tests/mutants/planted.hpp"
#include "property_tests/tensors.hpp"

namespace syslab::swiglu {
namespace {

double sigma(double t) { return 1 / (1 + std::exp(-t)); }

void forward(Fault fault, const Rung& sound, const Problem& p, const ForwardArgs& args) {
  sound.forward(p, args, {}, {});
  const std::vector<double> gate = to_doubles(args.gate), up = to_doubles(args.up);
  std::vector<double> out = to_doubles(args.out);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double t = fault == Fault::rectified ? std::abs(gate[i]) : gate[i];
    if (fault == Fault::rectified || fault == Fault::other_gate || fault == Fault::clipped) {
      out[i] = t * sigma(fault == Fault::other_gate ? 1.702 * t : t) *
               (fault == Fault::clipped ? std::clamp(up[i], -1.0, 1.0) : up[i]);
    }
  }
  property::assign(args.out, out);
  if (fault != Fault::write_past_end) return;
  auto* end = static_cast<std::byte*>(args.out.data) +
              static_cast<std::size_t>(extent_elements(args.out.shape, args.out.strides)) * size_of(p.dtype);
  *end = std::byte{0};
}

void backward(Fault fault, const Rung& sound, const Problem& p, const BackwardArgs& args) {
  sound.backward(p, args, {}, {});
  if (fault != Fault::slope_of_sigmoid) return;
  const std::vector<double> gate = to_doubles(args.gate), up = to_doubles(args.up), dout = to_doubles(args.dout);
  std::vector<double> dgate(gate.size());
  for (std::size_t i = 0; i < dgate.size(); ++i) dgate[i] = dout[i] * up[i] * sigma(gate[i]);
  property::assign(args.dgate, dgate);
}

}  // namespace

std::vector<Mutant> mutants() {
  return {
      {Fault::other_gate, "other_gate", "swiglu.equals_oracle"},
      {Fault::slope_of_sigmoid, "slope_of_sigmoid", "swiglu.gradients_equal_oracle"},
      {Fault::rectified, "rectified", "swiglu.odd_part"},
      {Fault::clipped, "clipped", "swiglu.linear_in_up"},
      {Fault::write_past_end, "write_past_end", "swiglu.writes_nothing_outside"},
  };
}

Rung naive_with(Fault fault) { return property::planted(mutants(), fault, find_rung("naive"), forward, backward); }

}  // namespace syslab::swiglu
