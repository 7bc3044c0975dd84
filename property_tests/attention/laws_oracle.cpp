// Laws that hold a rung against the float64 oracle and its derived bounds (ops/attention/oracle/oracle.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/attention/oracle/oracle.hpp"
#include "property_tests/attention/call.hpp"
#include "property_tests/attention/law_bodies.hpp"
#include "property_tests/verdict.hpp"

namespace syslab::attention {
namespace {

using check::Observation;
using property::demand_within;

ForwardOracle oracle_of(const Problem& problem, const ForwardCall& call) {
  return forward_oracle(problem, call.q.view(), call.k.view(), call.v.view());
}

// Largest |found − expected|; infinite where something found is no number.
double largest_error(const ConstTensorView& found, const std::vector<double>& expected) {
  const double whatever[] = {1.0};
  return check::compare(found, expected, whatever).max_error;
}

double largest_size(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

// Largest Euclidean norm of a row of `width` values.
double largest_norm(const std::vector<double>& values, std::int64_t width) {
  double largest = 0;
  for (auto row = values.begin(); row != values.end(); row += width) {
    largest = std::max(largest, std::inner_product(row, row + width, row, 0.0));
  }
  return std::sqrt(largest);
}

// The same problem on the same values, with the bounds of fp32.
Problem in_fp32(Problem problem) {
  problem.dtype = DType::f32;
  return problem;
}

// A derived bound must allow for the worst order of additions; a careless kernel can hide below it. The naive kernel in
// the same dtype is the measure that cannot be argued with. Beside twice its error, one rounding of the output is
// allowed, and what the same computation may err in fp32 (the tolerance of `expected`, for all or for each element):
// where naive happens to be exact, nobody must be.
void demand_no_worse(const check::GuardedTensor& ours, const check::GuardedTensor& naive, const Expected& expected,
                     DType dtype, Observation& observation) {
  const double yardstick = largest_error(naive.view(), expected.value);
  const double allowed = 2 * yardstick + unit_roundoff(dtype) * largest_size(expected.value);
  std::vector<double> tolerance(expected.tolerance);
  for (double& each : tolerance) each += allowed;
  try {
    demand_within(ours.spec().name, ours.view(), expected.value, tolerance, observation);
  } catch (const Error& error) {
    property::fail(fmt::format("{}; the naive kernel's worst error is {:.3g}", error.what(), yardstick));
  }
}

// A factor that is off by less than a rounding step moves no element beyond what rounding may, yet it moves all of them
// the same way, which rounding does not. The share of the expectation x in the error e is ⟨e, x⟩ / ⟨x, x⟩: the factor's
// excess. What rounding leaves of it is judged by the naive kernel's rows, each of them an independent try: they sum to
// a normal variable of deviation √(Σ_rows ⟨e_row, x_row⟩²) / ⟨x, x⟩. Allowed besides: one rounding of each element,
// kDeviations of both, and the errors of fp32 all in one direction.
void demand_no_bias(const check::GuardedTensor& ours, const check::GuardedTensor& naive, const Expected& expected,
                    DType dtype) {
  constexpr double kDeviations = 8;
  const std::vector<double> found = to_doubles(ours.view()), yardstick = to_doubles(naive.view());
  const auto width = static_cast<std::size_t>(ours.spec().shape[ours.spec().shape.rank() - 1]);
  double squares = 0, fourths = 0, along = 0, along_naive = 0, rows = 0, single = 0;
  for (std::size_t first = 0; first < found.size(); first += width) {
    double row = 0;
    for (std::size_t i = first; i < first + width; ++i) {
      const double x = expected.value[i];
      squares += x * x;
      fourths += x * x * x * x;
      along += (found[i] - x) * x;
      single += expected.tolerance[i] * std::abs(x);
      row += (yardstick[i] - x) * x;
    }
    along_naive += row;
    rows += row * row;
  }
  if (!(squares > 0) || !std::isfinite(squares)) return;
  const double excess = along / squares;
  const double rounding = unit_roundoff(dtype) * std::sqrt(fourths / 3) / squares;  // uniform in ± one half step
  const double allowed =
      (2 * std::abs(along_naive) + single) / squares + kDeviations * (std::sqrt(rows) / squares + rounding);
  if (std::abs(excess) <= allowed) return;
  property::fail(
      fmt::format("{}: all of it is {:+.3g} too large by a factor, at most ±{:.3g} is rounding; the naive "
                  "kernel's is {:+.3g}",
                  ours.spec().name, excess, allowed, along_naive / squares));
}

}  // namespace

std::vector<double> Subject::allowed(const std::vector<double>& expected, const std::vector<double>& derived) const {
  if (!wide()) return derived;
  constexpr double kOfficial = 1e-2;  // rtol and atol of the hand-out's tests
  std::vector<double> tolerance(derived);
  for (std::size_t i = 0; i < tolerance.size(); ++i) {
    if (std::isfinite(expected[i])) tolerance[i] = std::max(tolerance[i], kOfficial * (1 + std::abs(expected[i])));
  }
  return tolerance;
}

void equals_oracle(const Subject& subject, Observation& observation) {
  const Sample sample = draw_sample(subject.rung, subject.menu, Direction::forward);
  const ForwardCall call = call_forward(subject.rung, sample);
  const Expected out = oracle_of(sample.problem, call).out;
  demand_within("out", call.out.view(), out.value, subject.allowed(out.value, out.tolerance), observation);
}

void lse_equals_oracle(const Subject& subject, Observation& observation) {
  const Sample sample = draw_sample(subject.rung, subject.menu, Direction::forward);
  const ForwardCall call = call_forward(subject.rung, sample);
  const Expected lse = oracle_of(sample.problem, call).lse;
  demand_within("lse", call.lse.view(), lse.value, subject.allowed(lse.value, lse.tolerance), observation);
}

void gradients_equal_oracle(const Subject& subject, Observation& observation) {
  const Sample sample = draw_sample(subject.rung, subject.menu, Direction::backward);
  const BackwardCall call = call_backward(subject.rung, sample);
  const BackwardOracle oracle = backward_oracle(sample.problem, call.forward.q.view(), call.forward.k.view(),
                                                call.forward.v.view(), call.dout.view());
  const auto demand = [&](const check::GuardedTensor& found, const Expected& expected) {
    demand_within(found.spec().name, found.view(), expected.value, subject.allowed(expected.value, expected.tolerance),
                  observation);
  };
  demand(call.dq, oracle.dq);
  demand(call.dk, oracle.dk);
  demand(call.dv, oracle.dv);
}

// Queries and keys so long that scores reach about ±1e4, where exp overflows without the running maximum. The hand-out
// lets products round their inputs to ten bits; that moves such a score by about ten and the weights by anything, so
// there the output need only be a number among the values, and L be as near as the scores are.
void large_scores(const Subject& subject, Observation& observation) {
  Sample sample = draw_sample(subject.rung, subject.menu, Direction::forward);
  const Problem& problem = sample.problem;
  constexpr double kScore = 1e4, kNarrow = 1e-2;
  const double scale = std::abs(problem.effective_scale());
  const auto gain = static_cast<float>(std::sqrt(kScore / (scale * std::sqrt(static_cast<double>(problem.head_dim)))));
  sample.q = query_values(sample, "large q", gain);
  sample.k = key_values(sample, "large k", gain);
  const ForwardCall call = call_forward(subject.rung, sample);
  auto [out, lse, fraction] = oracle_of(problem, call);
  if (subject.wide()) {
    const double score = scale * largest_norm(sample.q, problem.head_dim) * largest_norm(sample.k, problem.head_dim);
    std::fill(out.value.begin(), out.value.end(), 0.0);
    out.tolerance = {(1 + kNarrow) * largest_size(sample.v)};
    lse.tolerance = {kNarrow * (1 + score)};
  }
  demand_within("out", call.out.view(), out.value, out.tolerance, observation);
  demand_within("lse", call.lse.view(), lse.value, lse.tolerance, observation);
}

void half_no_worse_than_naive(const Subject& subject, Observation& observation) {
  const Rung& naive = find_rung("naive");
  const Sample sample = draw_sample(subject.rung, subject.menu, Direction::forward);
  if (const auto reason = naive.supports(sample.problem, Direction::forward)) throw Unsupported(*reason);
  const ForwardCall ours = call_forward(subject.rung, sample);
  const ForwardCall theirs = call_forward(naive, sample);
  demand_no_worse(ours.out, theirs.out, oracle_of(in_fp32(sample.problem), ours).out, sample.problem.dtype,
                  observation);
}

void half_gradients_no_worse_than_naive(const Subject& subject, Observation& observation) {
  const Rung& naive = find_rung("naive");
  const Sample sample = draw_sample(subject.rung, subject.menu, Direction::backward);
  if (const auto reason = naive.supports(sample.problem, Direction::backward)) throw Unsupported(*reason);
  const BackwardCall ours = call_backward(subject.rung, sample), theirs = call_backward(naive, sample);
  const ForwardCall& forward = ours.forward;
  const BackwardOracle oracle =
      backward_oracle(in_fp32(sample.problem), forward.q.view(), forward.k.view(), forward.v.view(), ours.dout.view());
  const auto demand = [&](const check::GuardedTensor& found, const check::GuardedTensor& yardstick,
                          const Expected& expected) {
    demand_no_worse(found, yardstick, expected, sample.problem.dtype, observation);
    demand_no_bias(found, yardstick, expected, sample.problem.dtype);
  };
  demand(ours.dq, theirs.dq, oracle.dq);
  demand(ours.dk, theirs.dk, oracle.dk);
  demand(ours.dv, theirs.dv, oracle.dv);
}

}  // namespace syslab::attention
