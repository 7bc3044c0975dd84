// Laws that follow from the formula alone: softmax sums to one, does not see a common shift, can be put together from
// parts, and its gradient is its derivative.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/attention/oracle/oracle.hpp"
#include "property_tests/attention/call.hpp"
#include "property_tests/attention/law_bodies.hpp"
#include "property_tests/draw.hpp"
#include "property_tests/verdict.hpp"

namespace syslab::attention {
namespace {

using check::Observation;
using property::demand_within;

constexpr double kNotAsked = std::numeric_limits<double>::quiet_NaN();

// A forward call with the bounds of what it wrote. The oracle's values are not used.
struct Bounded {
  std::vector<double> out, lse, out_bound, lse_bound;
};

Bounded bounded_forward(const Subject& subject, const Sample& sample) {
  const ForwardCall call = call_forward(subject.rung, sample);
  const ForwardOracle oracle =
      forward_oracle(sample.problem, call.q.view(), call.k.view(), call.v.view(), subject.part(sample.problem));
  return {to_doubles(call.out.view()), to_doubles(call.lse.view()),
          subject.allowed(oracle.out.value, oracle.out.tolerance),
          subject.allowed(oracle.lse.value, oracle.lse.tolerance)};
}

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// Rows [first, last) of dimension 2 of a (batch, heads, rows, width) array.
std::vector<double> rows(const std::vector<double>& values, const Shape& shape, std::int64_t first, std::int64_t last) {
  std::vector<double> part;
  part.reserve(at(shape[0] * shape[1] * (last - first) * shape[3]));
  for (std::int64_t head = 0; head < shape[0] * shape[1]; ++head) {
    const auto begin = values.begin() + (head * shape[2] + first) * shape[3];
    part.insert(part.end(), begin, begin + (last - first) * shape[3]);
  }
  return part;
}

}  // namespace

// With every value 1 the output is Σ_j P_ij.
void rows_sum_to_one(const Subject& subject, Observation& observation) {
  Sample sample = subject.draw(Pass::forward);
  const Problem& problem = sample.problem;
  std::fill(sample.v.begin(), sample.v.end(), 1.0);
  const Bounded found = bounded_forward(subject, sample);
  std::vector<double> expected(found.out.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::int64_t row = static_cast<std::int64_t>(i) / problem.head_dim % problem.seq_q;
    expected[i] = problem.visible_keys(row) > 0 ? 1.0 : 0.0;
  }
  demand_within("out", found.out, sample.query_shape(), expected, found.out_bound, observation);
}

// The last feature of every query is 1, of every key 0 or else c: all scores of a row grow by exactly scale·c.
void shift_invariance(const Subject& subject, Observation& observation) {
  Sample sample = subject.draw(Pass::forward);
  const double shift = property::draw<double>("shift", {1, -1, 8, -8, 64, -64});
  const Problem& problem = sample.problem;
  const auto last_feature = [&](std::vector<double>& values, double value) {
    for (std::size_t i = at(problem.head_dim - 1); i < values.size(); i += at(problem.head_dim)) values[i] = value;
  };
  last_feature(sample.q, 1.0);
  last_feature(sample.k, 0.0);
  const Bounded before = bounded_forward(subject, sample);
  last_feature(sample.k, shift);
  Bounded after = bounded_forward(subject, sample);

  for (std::size_t i = 0; i < after.out.size(); ++i) after.out_bound[i] += before.out_bound[i];
  demand_within("after the shift: out", after.out, sample.query_shape(), before.out, after.out_bound, observation);
  std::vector<double> expected(before.lse);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] += static_cast<double>(problem.effective_scale()) * shift;
    after.lse_bound[i] += before.lse_bound[i];
  }
  demand_within("after the shift: lse", after.lse, sample.lse_shape(), expected, after.lse_bound, observation);
}

// Where to cut the keys, so that both parts are lengths that are promised.
std::int64_t split_of(const Subject& subject, std::int64_t keys, std::int64_t drawn) {
  if (subject.contract == check::Contract::handout) return keys / 2;
  if (!subject.rung.domain || !subject.rung.domain->bounded()) return 1 + drawn % (keys - 1);
  const std::int64_t least = subject.rung.domain->shortest();
  if (keys < 2 * least) throw Unsupported("too few keys to be cut");
  const std::int64_t step = std::max<std::int64_t>(subject.rung.domain->multiple_of, 1);
  return least + drawn % ((keys - 2 * least) / step + 1) * step;
}

// Attention over the first s keys and over the rest, joined by their log-sum-exps, is attention over all. Under the
// top-left mask the rest concerns the queries from s on, and is itself a top-left problem.
void split_keys(const Subject& subject, Observation& observation) {
  const Sample whole = subject.draw(Pass::forward);
  const Problem& problem = whole.problem;
  const std::int64_t drawn = property::draw_below("split", 256);
  const std::int64_t split = split_of(subject, problem.seq_k, drawn);
  const std::int64_t first_row = problem.mask == Mask::top_left ? std::min(split, problem.seq_q) : 0;

  // One part: keys [from, to), queries [row, seq_q).
  const auto part = [&](std::int64_t from, std::int64_t to, std::int64_t row) {
    Sample sample = whole;
    sample.problem.seq_k = to - from;
    sample.problem.seq_q = problem.seq_q - row;
    sample.k = rows(whole.k, whole.key_shape(), from, to);
    sample.v = rows(whole.v, whole.key_shape(), from, to);
    sample.q = rows(whole.q, whole.query_shape(), row, problem.seq_q);
    return sample;
  };
  const Sample low = part(0, split, 0), high = part(split, problem.seq_k, first_row);
  const bool has_high = high.problem.seq_q > 0;
  for (const Sample* one : {&low, &high}) {
    if (one == &high && !has_high) continue;
    if (const auto reason = subject.rung.supports(one->problem, Pass::forward)) throw Unsupported(*reason);
    if (!subject.rung.domain || !subject.rung.domain->bounded()) continue;
    if (const auto reason = subject.rung.domain->outside(one->problem)) throw Unsupported(*reason);
  }
  const Bounded all = bounded_forward(subject, whole), left = bounded_forward(subject, low);
  const Bounded right = has_high ? bounded_forward(subject, high) : Bounded{};

  std::vector<double> out(left.out), lse(left.lse), out_bound(all.out_bound), lse_bound(all.lse_bound);
  for (std::int64_t row = 0; row < problem.batch * problem.heads_q * problem.seq_q; ++row) {
    const std::int64_t head = row / problem.seq_q, in_head = row % problem.seq_q;
    const std::size_t l = at(row), r = at(head * high.problem.seq_q + in_head - first_row);
    const bool alone = !has_high || in_head < first_row;
    // Weights of the parts: e^(L_part − L); an error of the log-sum-exps moves weight from one part to the other.
    const double high_lse = alone ? -std::numeric_limits<double>::infinity() : right.lse[r];
    const double largest = std::max(left.lse[l], high_lse);
    const double low_share = std::exp(left.lse[l] - largest), high_share = std::exp(high_lse - largest);
    const double low_weight = low_share / (low_share + high_share), high_weight = high_share / (low_share + high_share);
    const double moved = alone ? 0.0 : low_weight * high_weight * std::expm1(left.lse_bound[l] + right.lse_bound[r]);
    lse[l] = largest + std::log(low_share + high_share);
    lse_bound[l] += alone ? left.lse_bound[l] : std::max(left.lse_bound[l], right.lse_bound[r]);
    for (std::int64_t d = 0; d < problem.head_dim; ++d) {
      const std::size_t i = l * at(problem.head_dim) + at(d), j = r * at(problem.head_dim) + at(d);
      out_bound[i] += low_weight * left.out_bound[i];
      if (alone) continue;
      out_bound[i] += high_weight * right.out_bound[j] + moved * std::abs(left.out[i] - right.out[j]);
      out[i] = low_weight * left.out[i] + high_weight * right.out[j];
    }
  }
  const std::string where = fmt::format("against parts split at key {}: ", split);
  demand_within(where + "out", all.out, whole.query_shape(), out, out_bound, observation);
  demand_within(where + "lse", all.lse, whole.lse_shape(), lse, lse_bound, observation);
}

// Gradients of f = Σ dO∘O against five-point differences of the double-precision reference at some seeded coordinates:
// f'(x) = (8(f(x+h) − f(x−h)) − (f(x+2h) − f(x−2h)))/(12h) + O(h⁴) (Abramowitz & Stegun, 25.3.6).
void finite_differences(const Subject& subject, Observation& observation) {
  constexpr double kStep = 0x1p-8;
  constexpr double kTruncation = 1e-6;  // h⁴/30·f⁽⁵⁾ with |f⁽⁵⁾| < 8e3 for scores of order one, and cancellation
  constexpr std::int64_t kCoordinates = 8;  // of each input
  const Sample sample = subject.draw(Pass::backward);
  const BackwardCall call = call_backward(subject.rung, sample);
  const BackwardOracle oracle = backward_oracle(sample.problem, call.forward.q.view(), call.forward.k.view(),
                                                call.forward.v.view(), call.dout.view(), subject.part(sample.problem));
  Sample exact = sample;
  exact.problem.dtype = DType::f64;
  exact.layout_in = exact.layout_out = property::Layout::contiguous;
  exact.mixed.clear();
  const Rung& reference = find_rung("reference");
  const auto loss_with = [&](std::vector<double>& input, std::size_t index, double change) {
    const double kept = input[index];
    input[index] = kept + change;
    const std::vector<double> out = forward_values(reference, exact).out;
    input[index] = kept;
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * sample.dout[i];
    return sum;
  };
  const auto demand = [&](const check::GuardedTensor& found, std::vector<double>& input, const Expected& gradient) {
    std::vector<double> expected(input.size(), kNotAsked),
        tolerance(subject.allowed(gradient.value, gradient.tolerance));
    const RandomStream stream(sample.seed);
    for (std::int64_t n = 0; n < kCoordinates; ++n) {
      const std::size_t index = stream.bits(static_cast<std::uint64_t>(n)) % input.size();
      const double near = loss_with(input, index, kStep) - loss_with(input, index, -kStep);
      const double far = loss_with(input, index, 2 * kStep) - loss_with(input, index, -2 * kStep);
      expected[index] = (8 * near - far) / (12 * kStep);
    }
    for (double& bound : tolerance) bound += kTruncation;
    demand_within(found.spec().name, found.view(), expected, tolerance, observation);
  };
  demand(call.dq, exact.q, oracle.dq);
  demand(call.dk, exact.k, oracle.dk);
  demand(call.dv, exact.v, oracle.dv);
}

}  // namespace syslab::attention
