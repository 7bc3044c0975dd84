#include "property_tests/swiglu/laws.hpp"

#include <algorithm>
#include <cmath>

#include "check/search.hpp"
#include "ops/swiglu/eager.hpp"
#include "property_tests/contracted.hpp"
#include "property_tests/draw.hpp"
#include "property_tests/left_out.hpp"
#include "property_tests/on_device.hpp"
#include "property_tests/tensors.hpp"
#include "property_tests/verdict.hpp"

namespace syslab::swiglu {
namespace {

using check::Contract;
using check::GuardedTensor;
using check::Observation;
using property::demand_within;
using property::Layout;

constexpr int kRows = 0;
constexpr std::int64_t kMostElements = 30'000;  // of gate
constexpr std::int64_t kMostOfBoth = 600;       // rows and columns, but for one long side

using Subject = property::Contracted<Rung>;

struct Sample {
  Problem problem;
  Layout layout = Layout::contiguous;
  bool recompute = false;
  std::vector<double> gate, up, dout;

  Shape matrix() const { return {problem.rows, problem.dim}; }
  Strides strides() const { return strides_of(matrix(), layout); }
  ConstTensorView view(const std::vector<double>& values) const { return {values.data(), DType::f64, matrix()}; }
};

std::vector<DType> dtypes_of(const Rung& rung, Pass pass) {
  std::vector<DType> dtypes;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    if (!rung.supports(Problem{64, 64, dtype}, pass)) dtypes.push_back(dtype);
  }
  return dtypes;
}

Sample draw_sample(const Subject& subject, Pass pass) {
  const bool handout = subject.contract == Contract::handout;
  const std::vector<std::int64_t> powers{16, 32, 64, 128, 256};
  const std::vector<std::int64_t> sizes = handout ? powers : property::sizes_up_to(kMostOfBoth);
  Sample sample;
  Problem& p = sample.problem;
  p.dtype = property::draw("dtype", dtypes_of(subject.rung, pass));
  const property::Sides sides = property::draw_sides(
      "rows", "dim", sizes, handout ? std::vector<std::int64_t>{} : property::long_sizes(), kMostElements);
  p.rows = sides.rows;
  p.dim = sides.columns;
  sample.layout = property::draw<Layout>(
      "layout", handout ? std::vector{Layout::contiguous} : std::vector{Layout::contiguous, Layout::padded});
  const auto scale = static_cast<float>(property::draw<double>("scale_of_gate", {1, 4, 32}));
  sample.recompute = property::draw<bool>("recompute", {false, true});
  const std::uint64_t seed = property::draw_seed();
  sample.gate = property::random_values(seed, "gate", p.rows * p.dim, p.dtype, scale);
  sample.up = property::random_values(seed, "up", p.rows * p.dim, p.dtype);
  sample.dout = property::random_values(seed, "dout", p.rows * p.dim, p.dtype);
  return sample;
}

struct ForwardCall {
  GuardedTensor gate, up, out;
};

ForwardCall call_forward(const Rung& rung, const Sample& s) {
  const DType dtype = s.problem.dtype;
  ForwardCall call{property::input("gate", dtype, s.matrix(), s.strides(), s.gate),
                   property::input("up", dtype, s.matrix(), s.strides(), s.up),
                   property::output("out", dtype, s.matrix(), s.strides())};
  property::OnDevice there(rung.device);
  const ForwardArgs args{there.view(call.gate), there.view(call.up), there.view(call.out)};
  validate(s.problem, args);
  rung.forward(s.problem, args, {}, there.stream());
  there.finish();
  return call;
}

struct BackwardCall {
  GuardedTensor gate, up, dout, dgate, dup, out;
};

BackwardCall call_backward(const Rung& rung, const Sample& s) {
  const DType dtype = s.problem.dtype;
  BackwardCall call{property::input("gate", dtype, s.matrix(), s.strides(), s.gate),
                    property::input("up", dtype, s.matrix(), s.strides(), s.up),
                    property::input("dout", dtype, s.matrix(), s.strides(), s.dout),
                    property::output("dgate", dtype, s.matrix(), s.strides()),
                    property::output("dup", dtype, s.matrix(), s.strides()),
                    property::output("out", dtype, s.matrix(), s.strides())};
  property::OnDevice there(rung.device);
  BackwardArgs args{there.view(call.gate),  there.view(call.up),  there.view(call.dout),
                    there.view(call.dgate), there.view(call.dup), {}};
  if (s.recompute) args.out = there.view(call.out);
  validate(s.problem, args);
  rung.backward(s.problem, args, {}, there.stream());
  there.finish();
  return call;
}

// With what a rung that goes operation by operation may add by rounding between them.
Expected expected_out(const Rung& rung, const Sample& s) {
  Expected out = forward_oracle(s.problem, s.view(s.gate), s.view(s.up));
  if (rung.op_by_op) eager_allow(s.problem, s.view(s.gate), s.view(s.up), out);
  return out;
}

BackwardOracle expected_gradients(const Rung& rung, const Sample& s) {
  BackwardOracle exact = backward_oracle(s.problem, s.view(s.gate), s.view(s.up), s.view(s.dout));
  if (rung.op_by_op) eager_allow(s.problem, s.view(s.gate), s.view(s.up), s.view(s.dout), exact);
  return exact;
}

void equals_oracle(const Subject& subject, Observation& observation) {
  const Sample s = draw_sample(subject, Pass::forward);
  const Expected out = expected_out(subject.rung, s);
  demand_within("out", call_forward(subject.rung, s).out.view(), out.value, subject.allowed(out), observation, kRows);
}

void gradients_equal_oracle(const Subject& subject, Observation& observation) {
  const Sample s = draw_sample(subject, Pass::backward);
  const BackwardCall call = call_backward(subject.rung, s);
  const BackwardOracle e = expected_gradients(subject.rung, s);
  demand_within("dgate", call.dgate.view(), e.dgate.value, subject.allowed(e.dgate), observation, kRows);
  demand_within("dup", call.dup.view(), e.dup.value, subject.allowed(e.dup), observation, kRows);
  if (!s.recompute) return;
  const Expected out = expected_out(subject.rung, s);
  demand_within("out, made again", call.out.view(), out.value, subject.allowed(out), observation, kRows);
}

// silu(t) − silu(−t) = t.
void odd_part(const Subject& subject, Observation& observation) {
  Sample s = draw_sample(subject, Pass::forward), mirrored;
  std::fill(s.up.begin(), s.up.end(), 1.0);
  mirrored = s;
  for (double& t : mirrored.gate) t = -t;
  std::vector<double> found = to_doubles(call_forward(subject.rung, s).out.view());
  const std::vector<double> other = to_doubles(call_forward(subject.rung, mirrored).out.view());
  const std::vector<double> one = subject.allowed(expected_out(subject.rung, s)),
                            two = subject.allowed(expected_out(subject.rung, mirrored));
  std::vector<double> bound(one.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    found[i] -= other[i];
    bound[i] = one[i] + two[i];
  }
  demand_within("silu(t) − silu(−t)", found, s.matrix(), s.gate, bound, observation, kRows);
}

// Twice the values of `up` give twice the result, to the bit: powers of two round to nothing.
void linear_in_up(const Subject& subject, Observation& observation) {
  const Sample s = draw_sample(subject, Pass::forward);
  Sample doubled = s;
  for (double& u : doubled.up) u *= 2;
  std::vector<double> expected = to_doubles(call_forward(subject.rung, s).out.view());
  for (double& out : expected) out *= 2;
  std::vector<double> bound = subject.allowed(expected_out(subject.rung, doubled));
  for (double& width : bound) width *= 2;
  demand_within("of 2·up: out", call_forward(subject.rung, doubled).out.view(), expected, bound, observation, kRows);
}

void writes_nothing_outside(const Subject& subject, Observation&) {
  const Sample s = draw_sample(subject, Pass::forward);
  const ForwardCall forward = call_forward(subject.rung, s);
  property::demand_untouched(forward.gate, s.gate, kRows);
  property::demand_untouched(forward.up, s.up, kRows);
  property::demand_written(forward.out);
  const BackwardCall backward = call_backward(subject.rung, s);
  property::demand_untouched(backward.gate, s.gate, kRows);
  property::demand_untouched(backward.up, s.up, kRows);
  property::demand_untouched(backward.dout, s.dout, kRows);
  property::demand_written(backward.dgate);
  property::demand_written(backward.dup);
  if (s.recompute) return property::demand_written(backward.out);
  property::demand_unharmed(backward.out);
  if (backward.out.unwritten() != s.matrix().elements()) property::fail("out was written, which was not asked for");
}

constexpr property::ContractedLaw<Rung> kEntries[] = {
    {"swiglu.equals_oracle", "out is within its derived bound", equals_oracle, true},
    {"swiglu.gradients_equal_oracle", "dgate, dup and out made again are within their derived bounds",
     gradients_equal_oracle, true},
    {"swiglu.odd_part", "silu(t) − silu(−t) = t", odd_part},
    {"swiglu.linear_in_up", "out(gate, 2·up) = 2·out(gate, up)", linear_in_up},
    {"swiglu.writes_nothing_outside", "only the outputs are written, and all of them", writes_nothing_outside},
};

}  // namespace

std::vector<check::Law> laws(const Rung& rung) {
  return property::bound(kEntries, rung, property::search_contracted<Rung>);
}

std::string never_drawn(const Rung& rung) {
  const std::vector<std::int64_t> sides =
      property::with_longer(property::sizes_up_to(kMostOfBoth), property::long_sizes());
  return property::all_left_out(dtypes_of(rung, Pass::forward),
                                {property::sizes_left_out("rows", sides), property::sizes_left_out("dim", sides),
                                 property::above("elements", kMostElements), "inputs with inf or NaN"});
}

std::vector<LawInfo> law_list() { return property::statements(kEntries); }

}  // namespace syslab::swiglu
