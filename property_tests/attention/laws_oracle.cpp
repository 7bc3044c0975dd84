// Laws that hold a rung against the float64 oracle and its derived bounds (ops/attention/oracle.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/attention/oracle.hpp"
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

}  // namespace

std::vector<double> Subject::allowed(const std::vector<double>& expected, const std::vector<double>& derived) const {
  if (contract == check::Contract::full) return derived;
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
  if (subject.contract == check::Contract::handout) {
    const double score = scale * largest_norm(sample.q, problem.head_dim) * largest_norm(sample.k, problem.head_dim);
    std::fill(out.value.begin(), out.value.end(), 0.0);
    out.tolerance = {(1 + kNarrow) * largest_size(sample.v)};
    lse.tolerance = {kNarrow * (1 + score)};
  }
  demand_within("out", call.out.view(), out.value, out.tolerance, observation);
  demand_within("lse", call.lse.view(), lse.value, lse.tolerance, observation);
}

// A derived bound must allow for the worst order of additions; a careless kernel can hide below it. The naive kernel in
// the same dtype is the measure that cannot be argued with. Beside twice its error, one rounding of the output is
// allowed: where naive happens to be exact, nobody must be.
void half_no_worse_than_naive(const Subject& subject, Observation& observation) {
  const Rung& naive = find_rung("naive");
  const Sample sample = draw_sample(subject.rung, subject.menu, Direction::forward);
  if (const auto reason = naive.supports(sample.problem, Direction::forward)) throw Unsupported(*reason);
  const ForwardCall ours = call_forward(subject.rung, sample);
  const ForwardCall theirs = call_forward(naive, sample);
  const Expected out = oracle_of(sample.problem, ours).out;
  const double yardstick = largest_error(theirs.out.view(), out.value);
  const double allowed = 2 * yardstick + unit_roundoff(sample.problem.dtype) * largest_size(out.value);
  const double tolerance[] = {allowed};
  try {
    demand_within("out", ours.out.view(), out.value, tolerance, observation);
  } catch (const Error& error) {
    property::fail(fmt::format("{}; the naive kernel's worst error is {:.3g}", error.what(), yardstick));
  }
}

}  // namespace syslab::attention
