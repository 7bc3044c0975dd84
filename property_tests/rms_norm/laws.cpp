#include "property_tests/rms_norm/laws.hpp"

#include <algorithm>
#include <cmath>

#include "check/search.hpp"
#include "ops/rms_norm/eager.hpp"
#include "property_tests/contracted.hpp"
#include "property_tests/draw.hpp"
#include "property_tests/on_device.hpp"
#include "property_tests/tensors.hpp"
#include "property_tests/verdict.hpp"

namespace syslab::rms_norm {
namespace {

using check::Contract;
using check::GuardedTensor;
using check::Observation;
using property::demand_within;
using property::Layout;

constexpr int kRows = 0;
constexpr std::int64_t kMostElements = 30'000;  // of x
constexpr std::int64_t kMostOfBoth = 600;       // rows and columns, but for one long side

using Subject = property::Contracted<Rung>;

struct Sample {
  Problem problem;
  DType delta_dtype = DType::f32;
  Layout layout = Layout::contiguous;
  bool with_dh = false, accumulate = false;
  std::vector<double> x, delta, w, dy, dh, dw;

  Shape matrix() const { return {problem.rows, problem.dim}; }
  Strides strides() const { return strides_of(matrix(), layout); }
};

// All of one dtype, or a residual stream in fp32 around half precision.
struct Dtypes {
  DType x, y;
  bool operator==(const Dtypes&) const = default;
};
void showValue(const Dtypes& dtypes, std::ostream& stream) {
  stream << "x " << to_string(dtypes.x) << ", y " << to_string(dtypes.y);
}

Problem with(Problem p, const Dtypes& dtypes) {
  p.x_dtype = dtypes.x;
  p.y_dtype = dtypes.y;
  p.w_dtype = p.statistics();
  return p;
}

std::vector<Dtypes> dtypes_of(const Rung& rung, Pass pass) {
  std::vector<Dtypes> taken;
  for (const Dtypes dtypes :
       {Dtypes{DType::f32, DType::f32}, Dtypes{DType::bf16, DType::bf16}, Dtypes{DType::f16, DType::f16},
        Dtypes{DType::f32, DType::bf16}, Dtypes{DType::f32, DType::f16}, Dtypes{DType::f64, DType::f64}}) {
    if (!rung.supports(with({.rows = 64, .dim = 64}, dtypes), pass)) taken.push_back(dtypes);
  }
  return taken;
}

std::vector<double> eps_values() { return {Problem{}.eps, 0.5}; }

Sample draw_sample(const Subject& subject, Pass pass) {
  const bool handout = subject.contract == Contract::handout;
  const std::vector<std::int64_t> powers{16, 32, 64, 128, 256};
  const std::vector<std::int64_t> sizes = handout ? powers : property::sizes_up_to(kMostOfBoth);
  Sample sample;
  Problem& p = sample.problem;
  p = with(p, property::draw("dtypes", dtypes_of(subject.rung, pass)));
  const property::Sides sides = property::draw_sides(
      "rows", "dim", sizes, handout ? std::vector<std::int64_t>{} : property::long_sizes(), kMostElements);
  p.rows = sides.rows;
  p.dim = sides.columns;
  p.add = property::draw<bool>("add", {false, true});
  // Beside inputs of order one the usual eps hardly shows, wherever it is added.
  if (!handout) p.eps = property::draw("eps", eps_values());
  sample.layout = property::draw<Layout>(
      "layout", handout ? std::vector{Layout::contiguous} : std::vector{Layout::contiguous, Layout::padded});
  sample.with_dh = property::draw<bool>("with_dh", {false, true});
  sample.accumulate = property::draw<bool>("accumulate", {false, true});
  const std::uint64_t seed = property::draw_seed();
  RC_PRE(!subject.rung.supports(p, pass).has_value());
  sample.delta_dtype = p.y_dtype;
  sample.x = property::random_values(seed, "x", p.rows * p.dim, p.x_dtype);
  sample.delta = property::random_values(seed, "delta", p.rows * p.dim, p.y_dtype);
  sample.w = property::random_values(seed, "w", p.dim, p.w_dtype);
  sample.dy = property::random_values(seed, "dy", p.rows * p.dim, p.y_dtype);
  sample.dh = property::random_values(seed, "dh", p.rows * p.dim, p.x_dtype);
  sample.dw = property::random_values(seed, "dw", p.dim, p.statistics());
  return sample;
}

struct ForwardCall {
  GuardedTensor x, delta, w, h, y, rstd;
};

ForwardCall call_forward(const Rung& rung, const Sample& s) {
  const Problem& p = s.problem;
  ForwardCall call{property::input("x", p.x_dtype, s.matrix(), s.strides(), s.x),
                   property::input("delta", s.delta_dtype, s.matrix(), s.strides(), s.delta),
                   property::input("w", p.w_dtype, {p.dim}, {1}, s.w),
                   property::output("h", p.x_dtype, s.matrix(), s.strides()),
                   property::output("y", p.y_dtype, s.matrix(), s.strides()),
                   property::output("rstd", p.statistics(), {p.rows}, {1})};
  property::OnDevice there(rung.device);
  ForwardArgs args{there.view(call.x), {}, there.view(call.w), {}, there.view(call.y), there.view(call.rstd)};
  if (p.add) {
    args.delta = there.view(call.delta);
    args.h = there.view(call.h);
  }
  validate(p, args);
  rung.forward(p, args, {}, there.stream());
  there.finish();
  return call;
}

ForwardOracle expected_forward(const Sample& s) {
  const Problem& p = s.problem;
  const auto view = [](const std::vector<double>& values, const Shape& shape) {
    return ConstTensorView(values.data(), DType::f64, shape);
  };
  return forward_oracle(p, view(s.x, s.matrix()), p.add ? view(s.delta, s.matrix()) : ConstTensorView{},
                        view(s.w, {p.dim}));
}

struct BackwardCall {
  GuardedTensor dy, h, w, rstd, dh, dx, dw;
};

// Of h = x, with rstd as the oracle has it.
BackwardCall call_backward(const Rung& rung, const Sample& s) {
  Sample plain = s;
  plain.problem.add = false;
  const Problem& p = plain.problem;
  BackwardCall call{property::input("dy", p.y_dtype, s.matrix(), s.strides(), s.dy),
                    property::input("h", p.x_dtype, s.matrix(), s.strides(), s.x),
                    property::input("w", p.w_dtype, {p.dim}, {1}, s.w),
                    property::input("rstd", p.statistics(), {p.rows}, {1}, expected_forward(plain).rstd.value),
                    property::input("dh", p.x_dtype, s.matrix(), s.strides(), s.dh),
                    property::output("dx", p.x_dtype, s.matrix(), s.strides()),
                    property::output("dw", p.statistics(), {p.dim}, {1})};
  if (s.accumulate) property::assign(call.dw.view(), s.dw);
  property::OnDevice there(rung.device);
  BackwardArgs args{there.view(call.dy), there.view(call.h),  there.view(call.w), there.view(call.rstd), {},
                    there.view(call.dx), there.view(call.dw), s.accumulate};
  if (s.with_dh) args.dh = there.view(call.dh);
  validate(p, args);
  rung.backward(p, args, {}, there.stream());
  there.finish();
  return call;
}

// With what a rung that goes operation by operation may add by rounding between them.
BackwardOracle expected_backward(const Rung& rung, const BackwardCall& call, const Sample& s) {
  const ConstTensorView before(s.dw.data(), DType::f64, {s.problem.dim});
  const ConstTensorView dh = s.with_dh ? ConstTensorView(call.dh.view()) : ConstTensorView{};
  BackwardOracle exact = backward_oracle(s.problem, call.dy.view(), call.h.view(), call.w.view(), call.rstd.view(), dh,
                                         s.accumulate ? before : ConstTensorView{});
  if (rung.op_by_op) eager_allow(s.problem, dh, exact);
  return exact;
}

void equals_oracle(const Subject& subject, Observation& observation) {
  const Sample s = draw_sample(subject, Pass::forward);
  const ForwardCall call = call_forward(subject.rung, s);
  const ForwardOracle e = expected_forward(s);
  demand_within("y", call.y.view(), e.y.value, subject.allowed(e.y.tolerance, e.y.value), observation, kRows);
  demand_within("rstd", call.rstd.view(), e.rstd.value, subject.allowed(e.rstd.tolerance, e.rstd.value), observation,
                kRows);
  if (s.problem.add) {
    demand_within("h", call.h.view(), e.h.value, subject.allowed(e.h.tolerance, e.h.value), observation, kRows);
  }
}

void gradients_equal_oracle(const Subject& subject, Observation& observation) {
  const Sample s = draw_sample(subject, Pass::backward);
  const BackwardCall call = call_backward(subject.rung, s);
  const BackwardOracle e = expected_backward(subject.rung, call, s);
  demand_within("dx", call.dx.view(), e.dx.value, subject.allowed(e.dx.tolerance, e.dx.value), observation, kRows);
  demand_within("dw", call.dw.view(), e.dw.value, subject.allowed(e.dw.tolerance, e.dw.value), observation, kRows);
}

// With eps scaled by the square the result is the same; powers of two, so that c·x is exact.
void scale_invariance(const Subject& subject, Observation& observation) {
  Sample s = draw_sample(subject, Pass::forward);
  const double c = property::draw<double>("c", {2, 0.5, 16, -4});
  s.problem.add = false;
  const std::vector<double> once = to_doubles(call_forward(subject.rung, s).y.view());
  Sample scaled = s;
  scaled.problem.eps *= c * c;
  for (double& x : scaled.x) x *= c;
  const ForwardCall call = call_forward(subject.rung, scaled);
  const ForwardOracle e = expected_forward(s);
  std::vector<double> expected = once, bound = subject.allowed(e.y.tolerance, e.y.value);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] *= c < 0 ? -1 : 1;
    bound[i] *= 2;
  }
  demand_within("of c·x: y", call.y.view(), expected, bound, observation, kRows);
}

void row_permutation(const Subject& subject, Observation& observation) {
  const Sample s = draw_sample(subject, Pass::forward);
  const std::int64_t shift = property::draw_below("rotate_by", 256) % s.problem.rows * s.problem.dim;
  Sample rotated = s;
  for (std::vector<double>* rows : {&rotated.x, &rotated.delta}) {
    std::rotate(rows->begin(), rows->begin() + shift, rows->end());
  }
  std::vector<double> expected = to_doubles(call_forward(subject.rung, s).y.view()), bound{0.0};
  std::rotate(expected.begin(), expected.begin() + shift, expected.end());
  if (!subject.exact()) {
    const Expected y = expected_forward(rotated).y;
    bound = subject.allowed(y.tolerance, y.value);
    for (double& width : bound) width *= 2;
  }
  demand_within("after the rows were rotated: y", call_forward(subject.rung, rotated).y.view(), expected, bound,
                observation, kRows);
}

// y does not change along h but for eps, so no gradient flows there: Σ_d dx·h = eps·rstd³·Σ_d w·dy·h.
void no_gradient_along_h(const Subject& subject, Observation& observation) {
  Sample s = draw_sample(subject, Pass::backward);
  s.with_dh = false;
  const Problem& p = s.problem;
  const BackwardCall call = call_backward(subject.rung, s);
  const BackwardOracle e = expected_backward(subject.rung, call, s);
  const std::vector<double> dx = to_doubles(call.dx.view()), rstd = to_doubles(call.rstd.view()),
                            allowed = subject.allowed(e.dx.tolerance, e.dx.value);
  std::vector<double> found, expected, bound;
  for (std::int64_t row = 0; row < p.rows; ++row) {
    long double along = 0, products = 0, squares = 0, tolerance = 0;
    for (std::int64_t d = 0; d < p.dim; ++d) {
      const auto i = static_cast<std::size_t>(row * p.dim + d);
      along += static_cast<long double>(dx[i]) * s.x[i];
      products += static_cast<long double>(s.w[static_cast<std::size_t>(d)]) * s.dy[i] * s.x[i];
      squares += static_cast<long double>(s.x[i]) * s.x[i];
      tolerance += allowed[i] * std::abs(s.x[i]);
    }
    // rstd is rounded: 1 − mean(h²)·rstd² stands for eps·rstd².
    const long double r = rstd[static_cast<std::size_t>(row)], rest = 1 - squares / p.dim * r * r;
    found.push_back(static_cast<double>(along));
    expected.push_back(static_cast<double>(r * products * rest));
    bound.push_back(static_cast<double>(tolerance) + 1e-9 * static_cast<double>(std::abs(r * products)));
  }
  demand_within("Σ dx·h", found, {p.rows}, expected, bound, observation, kRows);
}

void writes_nothing_outside(const Subject& subject, Observation&) {
  const Sample s = draw_sample(subject, Pass::forward);
  const ForwardCall forward = call_forward(subject.rung, s);
  property::demand_untouched(forward.x, s.x, kRows);
  property::demand_untouched(forward.w, s.w, kRows);
  property::demand_written(forward.y);
  property::demand_written(forward.rstd);
  if (s.problem.add) {
    property::demand_untouched(forward.delta, s.delta, kRows);
    property::demand_written(forward.h);
  }
  if (subject.rung.supports(s.problem, Pass::backward)) return;
  const BackwardCall backward = call_backward(subject.rung, s);
  property::demand_untouched(backward.dy, s.dy, kRows);
  property::demand_untouched(backward.h, s.x, kRows);
  property::demand_untouched(backward.w, s.w, kRows);
  property::demand_untouched(backward.dh, s.dh, kRows);
  property::demand_unharmed(backward.rstd);
  property::demand_written(backward.dx);
  property::demand_written(backward.dw);
}

constexpr property::ContractedLaw<Rung> kEntries[] = {
    {"rms_norm.equals_oracle", "y, rstd and h are within their derived bounds", equals_oracle, true},
    {"rms_norm.gradients_equal_oracle", "dx and dw are within their derived bounds", gradients_equal_oracle, true},
    {"rms_norm.scale_invariance", "y(c·x) = y(x), eps scaled by c²", scale_invariance},
    {"rms_norm.row_permutation", "permuting the rows permutes y", row_permutation},
    {"rms_norm.no_gradient_along_h", "Σ_d dx_d·h_d is what eps alone leaves", no_gradient_along_h},
    {"rms_norm.writes_nothing_outside", "only the outputs are written, and all of them", writes_nothing_outside},
};

check::LawResult search(const property::ContractedLaw<Rung>& law, const Rung& rung, const check::LawRequest& request) {
  const bool backward = law.body == gradients_equal_oracle || law.body == no_gradient_along_h;
  if (backward && rung.unavailable.empty() && !rung.backward) {
    return property::does_not_apply(rung.name + " has no backward pass");
  }
  return property::search_contracted(law, rung, request);
}

}  // namespace

std::vector<check::Law> laws(const Rung& rung) { return property::bound(kEntries, rung, search); }

std::string never_drawn(const Rung& rung) {
  const std::vector<std::int64_t> sides =
      property::with_longer(property::sizes_up_to(kMostOfBoth), property::long_sizes());
  std::vector<DType> dtypes;
  for (const Dtypes& one : dtypes_of(rung, Pass::forward)) {
    if (one.x == one.y) dtypes.push_back(one.x);
  }
  return property::all_left_out(
      dtypes, {property::sizes_left_out("rows", sides), property::sizes_left_out("dim", sides),
               property::above("elements of x", kMostElements), property::other_than("eps", eps_values()),
               "inputs with inf or NaN"});
}

std::vector<LawInfo> law_list() { return property::statements(kEntries); }

}  // namespace syslab::rms_norm
