#include "property_tests/weighted_sum/laws.hpp"

#include <algorithm>
#include <cmath>

#include "check/search.hpp"
#include "ops/sum_of_products.hpp"
#include "property_tests/draw.hpp"
#include "property_tests/law_table.hpp"
#include "property_tests/left_out.hpp"
#include "property_tests/on_device.hpp"
#include "property_tests/tensors.hpp"
#include "property_tests/verdict.hpp"

namespace syslab::weighted_sum {
namespace {

using check::Contract;
using check::GuardedTensor;
using check::Observation;
using property::demand_within;
using property::Layout;

constexpr int kRows = 0;                        // of x: the dimension that kernels cut into tiles
constexpr std::int64_t kMostElements = 40'000;  // of x
constexpr std::int64_t kMostOfBoth = 600;       // rows and columns, but for one long side

// All of x, or of dy, below 1e-3: 8 deviations of 2⁻¹³ are. Bounds are derived and have a term for each rounding of a
// subnormal, so they hold at any size; in fp16, whose smallest normal is 2⁻¹⁴, 2⁻⁸ leaves 99 % of what is drawn normal.
float small_gain(DType dtype) { return dtype == DType::f16 ? 0x1p-8F : 0x1p-13F; }

struct Subject {
  const Rung& rung;
  Contract contract;

  bool exact() const { return contract == Contract::full && rung.deterministic; }
  double allowed(double expected, double derived) const {
    if (contract == Contract::full) return derived;
    return std::max(derived, 1e-2 * (1 + std::abs(expected)));  // rtol and atol of the hand-out's tests
  }
};

struct Sample {
  Problem problem;
  Layout layout = Layout::contiguous;
  std::uint64_t seed = 0;
  std::vector<double> x, w, dy;

  Shape matrix() const { return {problem.rows, problem.dim}; }
};

std::vector<DType> dtypes_of(const Rung& rung, Pass pass) {
  std::vector<DType> dtypes;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    if (!rung.supports(Problem{64, 64, dtype}, pass)) dtypes.push_back(dtype);
  }
  return dtypes;
}

// Of rows and columns, and of a side that is longer.
struct Sizes {
  std::vector<std::int64_t> usual, longer;
  std::vector<std::int64_t> all() const { return property::with_longer(usual, longer); }
};
Sizes sizes_of(Contract contract) {
  if (contract == Contract::handout) return {{16, 32, 64, 128, 256}, {1024, 2048}};
  return {property::sizes_up_to(kMostOfBoth), property::long_sizes()};
}

// `any_size`: also of inputs far below 1, for laws that have a derived bound of what they compare.
Sample draw_sample(const Subject& subject, Pass pass, bool any_size = false) {
  const bool handout = subject.contract == Contract::handout;
  const Sizes sizes = sizes_of(subject.contract);
  Sample sample;
  Problem& problem = sample.problem;
  problem.dtype = property::draw("dtype", dtypes_of(subject.rung, pass));
  const property::Sides sides = property::draw_sides("rows", "dim", sizes.usual, sizes.longer, kMostElements);
  problem.rows = sides.rows;
  problem.dim = sides.columns;
  sample.layout = property::draw<Layout>(
      "layout", handout ? std::vector{Layout::contiguous} : std::vector{Layout::contiguous, Layout::padded});
  sample.seed = property::draw_seed();
  float gain = 1;
  if (any_size && !handout && property::draw<std::int64_t>("small", {0, 1}) == 1) gain = small_gain(problem.dtype);
  RC_PRE(!subject.rung.supports(problem, pass).has_value());
  sample.x = property::random_values(sample.seed, "x", problem.rows * problem.dim, problem.dtype, gain);
  sample.w = property::random_values(sample.seed, "w", problem.dim, problem.dtype);
  sample.dy = property::random_values(sample.seed, "dy", problem.rows, problem.dtype, gain);
  return sample;
}

struct ForwardCall {
  GuardedTensor x, w, y;
};

ForwardCall call_forward(const Rung& rung, const Sample& sample) {
  const Problem& p = sample.problem;
  ForwardCall call{property::input("x", p.dtype, sample.matrix(), strides_of(sample.matrix(), sample.layout), sample.x),
                   property::input("w", p.dtype, {p.dim}, {1}, sample.w),
                   property::output("y", p.dtype, {p.rows}, {1})};
  property::OnDevice there(rung.device);
  rung.forward(p, {there.view(call.x), there.view(call.w), there.view(call.y)}, {}, there.stream());
  there.finish();
  return call;
}

struct BackwardCall {
  GuardedTensor x, w, dy, dx, dw;
};

BackwardCall call_backward(const Rung& rung, const Sample& sample) {
  const Problem& p = sample.problem;
  const Strides strides = strides_of(sample.matrix(), sample.layout);
  BackwardCall call{
      property::input("x", p.dtype, sample.matrix(), strides, sample.x),
      property::input("w", p.dtype, {p.dim}, {1}, sample.w), property::input("dy", p.dtype, {p.rows}, {1}, sample.dy),
      property::output("dx", p.dtype, sample.matrix(), strides), property::output("dw", p.dtype, {p.dim}, {1})};
  property::OnDevice there(rung.device);
  rung.backward(p,
                {there.view(call.x), there.view(call.w), there.view(call.dy), there.view(call.dx), there.view(call.dw)},
                {}, there.stream());
  there.finish();
  return call;
}

struct Expected {
  std::vector<double> value, bound;
};

// `count` sums of `terms` products each, in extended precision, with their bounds.
template <typename Product>
Expected sums(const Subject& subject, DType dtype, std::int64_t count, std::int64_t terms, Product product) {
  Expected expected;
  for (std::int64_t i = 0; i < count; ++i) {
    long double sum = 0, magnitude = 0;
    for (std::int64_t n = 0; n < terms; ++n) {
      const long double term = product(i, n);
      sum += term;
      magnitude += std::abs(term);
    }
    const auto value = static_cast<double>(sum);
    expected.value.push_back(value);
    expected.bound.push_back(
        subject.allowed(value, ops::sum_of_products_bound(dtype, terms, value, static_cast<double>(magnitude))));
  }
  return expected;
}

long double product(const std::vector<double>& a, std::int64_t i, const std::vector<double>& b, std::int64_t j) {
  return static_cast<long double>(a[static_cast<std::size_t>(i)]) * b[static_cast<std::size_t>(j)];
}

Expected expected_y(const Subject& subject, const Sample& sample) {
  const Problem& p = sample.problem;
  return sums(subject, p.dtype, p.rows, p.dim,
              [&](std::int64_t row, std::int64_t d) { return product(sample.x, row * p.dim + d, sample.w, d); });
}

void equals_oracle(const Subject& subject, Observation& observation) {
  const Sample sample = draw_sample(subject, Pass::forward, true);
  const ForwardCall call = call_forward(subject.rung, sample);
  const Expected y = expected_y(subject, sample);
  demand_within("y", call.y.view(), y.value, y.bound, observation, kRows);
}

void gradients_equal_oracle(const Subject& subject, Observation& observation) {
  const Sample sample = draw_sample(subject, Pass::backward, true);
  const Problem& p = sample.problem;
  const BackwardCall call = call_backward(subject.rung, sample);
  const Expected dx = sums(subject, p.dtype, p.rows * p.dim, 1, [&](std::int64_t i, std::int64_t) {
    return product(sample.dy, i / p.dim, sample.w, i % p.dim);
  });
  const Expected dw = sums(subject, p.dtype, p.dim, p.rows, [&](std::int64_t d, std::int64_t row) {
    return product(sample.x, row * p.dim + d, sample.dy, row);
  });
  demand_within("dx", call.dx.view(), dx.value, dx.bound, observation, kRows);
  demand_within("dw", call.dw.view(), dw.value, dw.bound, observation, kRows);
}

// y(a·x₁ + b·x₂) = a·y(x₁) + b·y(x₂). Inputs are quarters of small integers, so that a·x₁ + b·x₂ is exact in every
// dtype: below 256 units, the 8 bits of bf16.
void linearity(const Subject& subject, Observation& observation) {
  Sample first = draw_sample(subject, Pass::forward);
  const double a = property::draw<double>("a", {1, -1, 2, -2}), b = property::draw<double>("b", {1, -1, 2, -2});
  const auto quarters = [](std::vector<double>& values) {
    for (double& value : values) value = std::round(std::clamp(value, -4.0, 4.0) * 4) / 4;
  };
  Sample second = first;
  second.x = property::random_values(first.seed, "x2", first.problem.rows * first.problem.dim, first.problem.dtype);
  quarters(first.x);
  quarters(second.x);
  Sample both = first;
  for (std::size_t i = 0; i < both.x.size(); ++i) both.x[i] = a * first.x[i] + b * second.x[i];

  const auto y_of = [&](const Sample& sample) { return to_doubles(call_forward(subject.rung, sample).y.view()); };
  const std::vector<double> y1 = y_of(first), y2 = y_of(second), found = y_of(both);
  const Expected e1 = expected_y(subject, first), e2 = expected_y(subject, second), e = expected_y(subject, both);
  std::vector<double> expected(y1), bound(e.bound);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = a * y1[i] + b * y2[i];
    bound[i] += std::abs(a) * e1.bound[i] + std::abs(b) * e2.bound[i];
  }
  demand_within("of a·x1 + b·x2: y", found, {first.problem.rows}, expected, bound, observation, kRows);
}

void row_permutation(const Subject& subject, Observation& observation) {
  const Sample sample = draw_sample(subject, Pass::forward);
  const Problem& p = sample.problem;
  const std::int64_t shift = property::draw_below("rotate_by", 256) % p.rows;
  Sample permuted = sample;
  std::rotate(permuted.x.begin(), permuted.x.begin() + shift * p.dim, permuted.x.end());
  std::vector<double> expected = to_doubles(call_forward(subject.rung, sample).y.view());
  std::rotate(expected.begin(), expected.begin() + shift, expected.end());
  std::vector<double> bound{0.0};
  if (!subject.exact()) {
    bound = expected_y(subject, permuted).bound;
    for (double& width : bound) width *= 2;
  }
  const ForwardCall call = call_forward(subject.rung, permuted);
  demand_within("after the rows were rotated: y", call.y.view(), expected, bound, observation, kRows);
}

void writes_nothing_outside(const Subject& subject, Observation&) {
  const Sample sample = draw_sample(subject, Pass::forward);
  const ForwardCall forward = call_forward(subject.rung, sample);
  property::demand_untouched(forward.x, sample.x, kRows);
  property::demand_untouched(forward.w, sample.w, kRows);
  property::demand_written(forward.y);
  if (!subject.rung.backward || subject.rung.supports(sample.problem, Pass::backward)) return;
  const BackwardCall backward = call_backward(subject.rung, sample);
  property::demand_untouched(backward.x, sample.x, kRows);
  property::demand_untouched(backward.w, sample.w, kRows);
  property::demand_untouched(backward.dy, sample.dy, kRows);
  property::demand_written(backward.dx);
  property::demand_written(backward.dw);
}

struct Entry {
  const char* id;
  const char* statement;
  void (*body)(const Subject&, Observation&);
  Pass pass = Pass::forward;
  bool against_oracle = false;
};

constexpr Entry kEntries[] = {
    {"weighted_sum.equals_oracle", "y is within its derived bound of the exact sum", equals_oracle, Pass::forward,
     true},
    {"weighted_sum.gradients_equal_oracle", "dx and dw are within their derived bounds", gradients_equal_oracle,
     Pass::backward, true},
    {"weighted_sum.linearity", "y(a·x1 + b·x2) = a·y(x1) + b·y(x2)", linearity},
    {"weighted_sum.row_permutation", "permuting the rows of x permutes y", row_permutation},
    {"weighted_sum.writes_nothing_outside", "only the outputs are written, and all of them", writes_nothing_outside},
};

// Why the rung cannot be asked at all, or nothing.
std::optional<std::string> excuse(const Rung& rung, Pass pass) {
  if (const auto reason = property::OnDevice::refusal(rung.device)) return rung.name + " " + *reason;
  if (pass == Pass::backward && !rung.backward) return rung.name + " has no backward pass";
  std::string reason;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    const auto refused = rung.supports(Problem{64, 64, dtype}, pass);
    if (!refused) return std::nullopt;
    reason = *refused;
  }
  return reason;
}

check::LawResult search(const Entry& entry, const Rung& rung, const check::LawRequest& request) {
  if (const auto reason = excuse(rung, entry.pass)) return property::does_not_apply(*reason);
  const Subject subject{rung, request.contract};
  return property::with_left_out(
      check::search(entry.id, request, [&](Observation& observation) { entry.body(subject, observation); }), rung,
      request);
}

}  // namespace

std::vector<check::Law> laws(const Rung& rung) { return property::bound(kEntries, rung, search); }

std::string never_drawn(const Rung& rung, check::Contract contract) {
  const std::vector<std::int64_t> sides = sizes_of(contract).all();
  std::vector<std::string> parts{property::sizes_left_out("rows", sides), property::sizes_left_out("dim", sides)};
  if (contract == Contract::handout) {
    parts = {property::other_than("rows or dim", {sides.begin(), sides.end()}), "strided tensors"};
  }
  parts.push_back(property::above("elements of x", kMostElements));
  parts.emplace_back("inputs with inf or NaN");
  return property::all_left_out(dtypes_of(rung, Pass::forward), parts);
}

std::vector<LawInfo> law_list() { return property::statements(kEntries); }

}  // namespace syslab::weighted_sum
