#include "property_tests/mutants/rms_norm.hpp"

#include <cmath>

#include "property_tests/mutants/planted.hpp"
#include "property_tests/tensors.hpp"

namespace syslab::rms_norm {
namespace {

// Every element of a tensor, made anew from what it was and its row-major index.
template <typename Change>
void change(const TensorView& view, const Change& how) {
  std::vector<double> values = to_doubles(view);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = how(values[i], i);
  property::assign(view, values);
}

void forward(Fault fault, const Rung& sound, Problem p, const ForwardArgs& args) {
  if (fault == Fault::own_eps) p.eps = 0.25;
  sound.forward(p, args, {}, {});
  const double dim = static_cast<double>(p.dim);
  if (fault == Fault::one_less) change(args.y, [&](double y, std::size_t) { return y * std::sqrt((dim - 1) / dim); });
  if (fault == Fault::first_row_apart) {
    change(args.y, [&](double y, std::size_t i) { return i < static_cast<std::size_t>(p.dim) ? 1.02 * y : y; });
  }
  if (fault == Fault::write_past_end) args.rstd.as<float>()[p.rows] = 0;
}

// dw of all rows but the last; dx goes elsewhere.
void forget_last_row(const Rung& sound, Problem p, BackwardArgs args) {
  --p.rows;
  std::vector<std::byte> elsewhere(static_cast<std::size_t>(p.rows * p.dim) * size_of(p.x_dtype));
  args.dx = TensorView(elsewhere.data(), p.x_dtype, {p.rows, p.dim});
  for (ConstTensorView* matrix : {&args.dy, &args.h}) matrix->shape = {p.rows, p.dim};
  args.rstd.shape = {p.rows};
  args.dh = {};
  sound.backward(p, args, {}, {});
}

void backward(Fault fault, const Rung& sound, const Problem& p, const BackwardArgs& args) {
  if (fault == Fault::lost_row && p.rows > 1) {
    const std::vector<double> before = to_doubles(args.dw);
    sound.backward(p, args, {}, {});  // for dx
    if (!args.accumulate) return forget_last_row(sound, p, args);
    property::assign(args.dw, before);
    return forget_last_row(sound, p, args);
  }
  sound.backward(p, args, {}, {});
  if (fault != Fault::forgotten_projection) return;
  const std::vector<double> dy = to_doubles(args.dy), w = to_doubles(args.w), rstd = to_doubles(args.rstd);
  const auto dim = static_cast<std::size_t>(p.dim);
  change(args.dx, [&](double, std::size_t i) { return rstd[i / dim] * w[i % dim] * dy[i]; });
}

}  // namespace

std::vector<Mutant> mutants() {
  return {
      {Fault::one_less, "one_less", "rms_norm.equals_oracle"},
      {Fault::lost_row, "lost_row", "rms_norm.gradients_equal_oracle"},
      {Fault::own_eps, "own_eps", "rms_norm.scale_invariance"},
      {Fault::first_row_apart, "first_row_apart", "rms_norm.row_permutation"},
      {Fault::forgotten_projection, "forgotten_projection", "rms_norm.no_gradient_along_h"},
      {Fault::write_past_end, "write_past_end", "rms_norm.writes_nothing_outside"},
  };
}

Rung naive_with(Fault fault) { return property::planted(mutants(), fault, find_rung("naive"), forward, backward); }

}  // namespace syslab::rms_norm
