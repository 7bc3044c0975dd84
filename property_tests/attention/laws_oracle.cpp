// Laws that hold a rung against the float64 oracle and its derived bounds (ops/attention/oracle/oracle.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "core/error.hpp"
#include "core/refusal.hpp"
#include "ops/attention/foreign.hpp"
#include "ops/attention/oracle/oracle.hpp"
#include "property_tests/attention/call.hpp"
#include "property_tests/attention/half_rounding.hpp"
#include "property_tests/attention/law_bodies.hpp"
#include "property_tests/draw.hpp"
#include "property_tests/verdict.hpp"

namespace syslab::attention {
namespace {

using check::Observation;
using property::demand_within;

ForwardOracle oracle_of(const Problem& problem, const ForwardCall& call, const Part& part = {}) {
  return forward_oracle(problem, call.q.view(), call.k.view(), call.v.view(), part);
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

// Mean of (error / its deviation by one rounding)², beyond what fp32 may be off in all. At most about 1 of a right
// kernel.
double usage_of(const check::GuardedTensor& found, const Expected& expected, const HalfRounding& rounding) {
  const std::vector<double> values = to_doubles(found.view());
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double error = std::abs(values[i] - expected.value[i]);
    if (error <= expected.tolerance[i]) continue;
    const double share = (error - expected.tolerance[i]) / rounding.deviation[i];
    sum += share * share;
  }
  const double usage = sum / static_cast<double>(values.size());
  return std::isnan(usage) ? std::numeric_limits<double>::infinity() : usage;
}

// A derived bound of one element must allow for the worst of its roundings; a careless kernel can hide below it. All
// elements together cannot: the mean of their squared errors, each over its own deviation, is that of one rounding of
// each number that is half precision. A largest error would not do: over few elements it is chance, the naive kernel's
// as well as ours. What chance may add to the mean of n squares: Laurent & Massart 2000, lemma 1, less often than e^-t.
// A kernel as good as the naive one in the same dtype is right in any case: twice its error is allowed.
void demand_no_worse(const check::GuardedTensor& ours, const check::GuardedTensor& naive, const Expected& expected,
                     const HalfRounding& rounding, Observation& observation) {
  constexpr double kRarity = 25;  // t
  const double usage = usage_of(ours, expected, rounding), yardstick = usage_of(naive, expected, rounding);
  const double chance = kRarity / rounding.independent;
  const double allowed = std::max(4 * yardstick, 1 + 2 * std::sqrt(chance) + 2 * chance);
  observation.record(std::sqrt(usage), std::sqrt(allowed));
  if (usage <= allowed) return;
  property::fail(
      fmt::format("{}: errors are {:.3g} × what one rounding makes (root mean square), allowed {:.3g}; the naive "
                  "kernel's are {:.3g}",
                  ours.spec().name, std::sqrt(usage), std::sqrt(allowed), std::sqrt(yardstick)));
}

// A factor that is off by less than a rounding step moves no element beyond what rounding may, yet it moves all of them
// the same way, which rounding does not. The share of the expectation x in the error e is ⟨e, x⟩ / ⟨x, x⟩: the factor's
// excess. Allowed are kDeviations of what rounding leaves of it, and the errors of fp32 all in one direction.
void demand_no_bias(const check::GuardedTensor& ours, const Expected& expected, const HalfRounding& rounding) {
  constexpr double kDeviations = 8;
  const std::vector<double> found = to_doubles(ours.view());
  double squares = 0, along = 0, single = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double x = expected.value[i];
    squares += x * x;
    along += (found[i] - x) * x;
    single += expected.tolerance[i] * std::abs(x);
  }
  if (!(squares > 0) || !std::isfinite(squares)) return;
  const double excess = along / squares;
  const double allowed = (single + kDeviations * rounding.along) / squares;
  if (std::abs(excess) <= allowed) return;
  property::fail(fmt::format("{}: all of it is {:+.3g} too large by a factor, at most ±{:.3g} is rounding",
                             ours.spec().name, excess, allowed));
}

}  // namespace

Sample Subject::draw(Pass pass, bool supported_only) const {
  if (drawn_last != nullptr) drawn_last->reset();
  Sample sample = draw_sample(rung, menu, pass, supported_only);
  if (drawn_last != nullptr) *drawn_last = sample;
  return sample;
}

std::vector<double> Subject::allowed(const std::vector<double>& expected, const std::vector<double>& derived,
                                     double unit) const {
  if (!wide()) return derived;
  constexpr double kOfficial = 1e-2;  // rtol and atol of the hand-out's tests
  std::vector<double> tolerance(derived);
  for (std::size_t i = 0; i < tolerance.size(); ++i) {
    if (std::isfinite(expected[i])) tolerance[i] = std::max(tolerance[i], kOfficial * (unit + std::abs(expected[i])));
  }
  return tolerance;
}

namespace {

// Who writes all scores down may have no room for a long one, and has promised none.
template <typename Call>
auto called(const Sample& sample, const Call& call) {
  try {
    return call();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::oom && sample.long_both()) throw Unsupported(error.what());
    throw;
  }
}

}  // namespace

namespace {

// The sample with one tensor as q, k and v, as apply(x, x, x) has it, with fewer queries, keys or heads if need be; or
// nothing if the menu has no such shape.
std::optional<Sample> with_one_tensor(Sample sample, const Menu& menu) {
  Problem& problem = sample.problem;
  const std::int64_t length = std::min(problem.seq_q, problem.seq_k);
  const auto has = [length](const std::vector<std::int64_t>& lengths) {
    return std::ranges::count(lengths, length) > 0;
  };
  if (!has(menu.seq_q) || !has(menu.seq_k)) return std::nullopt;
  problem.seq_q = problem.seq_k = length;
  problem.heads_q = problem.heads_kv;
  sample.q = sample.k = sample.v = query_values(sample, "q");
  sample.value_gain = 1;
  if (!sample.dout.empty()) sample.dout = query_values(sample, "dout", sample.gradient_gain);
  return sample;
}

}  // namespace

// One sample in so many is asked under torch.no_grad(), and of the others one in so many with one tensor as q, k and v.
constexpr int kOfUses = 4;

// As a layer without projections has it.
constexpr const char* kOneTensor = "where q, k and v are the same tensor: ";

std::string draw_use(const Subject& subject, Sample& sample, std::optional<Company>& company) {
  // A model that is used, not trained, wants no gradients; the hand-out's tests always do.
  const bool by_autograd = subject.rung.domain && subject.rung.domain->by_autograd;
  const bool beyond = by_autograd && subject.contract == check::Contract::full;
  const bool is_used = beyond && property::draw_below("no_grad", kOfUses) == kOfUses - 1;
  const bool is_alike = beyond && property::draw_below("same_tensor", kOfUses) == kOfUses - 1 && !is_used;
  if (is_used) {
    company.emplace(Company::Of{.gradient = "none"});
    return "under torch.no_grad(): ";
  }
  const auto alike = is_alike ? with_one_tensor(sample, subject.menu) : std::nullopt;
  if (!alike) return {};
  company.emplace(Company::Of{.gradient = "same"});
  sample = *alike;
  subject.remember(sample);
  return kOneTensor;
}

void equals_oracle(const Subject& subject, Observation& observation) {
  Sample sample = subject.draw(Pass::forward);
  std::optional<Company> company;
  const std::string how = draw_use(subject, sample, company);
  const ForwardCall call = called(sample, [&] { return call_forward(subject.rung, sample); });
  const Expected out = oracle_of(sample.problem, call, subject.part(sample)).out;
  demand_within(how + "out", call.out.view(), out.value, subject.allowed(out.value, out.tolerance, sample.value_gain),
                observation);
}

void lse_equals_oracle(const Subject& subject, Observation& observation) {
  const Sample sample = subject.draw(Pass::forward);
  const ForwardCall call = called(sample, [&] { return call_forward(subject.rung, sample); });
  const Expected lse = oracle_of(sample.problem, call, subject.part(sample)).lse;
  demand_within("lse", call.lse.view(), lse.value, subject.allowed(lse.value, lse.tolerance), observation);
}

void gradients_equal_oracle(const Subject& subject, Observation& observation) {
  const Sample sample = subject.draw(Pass::backward);
  const BackwardCall call = called(sample, [&] { return call_backward(subject.rung, sample); });
  const BackwardOracle oracle = backward_oracle(sample.problem, call.forward.q.view(), call.forward.k.view(),
                                                call.forward.v.view(), call.dout.view(), subject.part(sample));
  const auto demand = [&](const check::GuardedTensor& found, const Expected& expected, double unit) {
    demand_within(found.spec().name, found.view(), expected.value,
                  subject.allowed(expected.value, expected.tolerance, unit), observation);
  };
  demand(call.dq, oracle.dq, sample.unit_of_scores());
  demand(call.dk, oracle.dk, sample.unit_of_scores());
  demand(call.dv, oracle.dv, sample.gradient_gain);
}

namespace {

struct Way {
  std::string name, how;
};

const std::vector<Way>& ways() {
  static const std::vector<Way> list{{"transposed", "with a dO that is transposed: "},
                                     {"expanded", "with a dO that is expanded: "},
                                     {"frozen", "where some inputs want no gradient: "},
                                     {"same", kOneTensor},
                                     {"kept", "in a second backward pass over a kept graph: "}};
  return list;
}

// Of one tensor that was q, k and v, the gradient is the sum of three. Each of them may be off by more than it may be
// alone: the score of a query with itself, |x|² / √d, is about √d where others are about 1, so that its weight is near
// 1 and not near 1 / n, and a kernel that rounds weights to half precision, as a right one may, is off by that much
// more there. The bound of 1 was exceeded by 1 % (HalfRoundedP of tests/worker/mine). Who adds up the wrong parts is
// off by as much as the gradients are.
constexpr double kConcentrated = 4;

Expected sum_of(const Subject& subject, const BackwardOracle& oracle) {
  Expected sum{oracle.dq.value, subject.allowed(oracle.dq.value, oracle.dq.tolerance), oracle.dq.fraction};
  for (const Expected* one : {&oracle.dk, &oracle.dv}) {
    const std::vector<double> allowed = subject.allowed(one->value, one->tolerance);
    for (std::size_t i = 0; i < sum.value.size(); ++i) {
      sum.value[i] += one->value[i];
      sum.tolerance[i] += allowed[i];
    }
  }
  for (double& tolerance : sum.tolerance) tolerance *= kConcentrated;
  return sum;
}

// One call of a backward pass in this way. That it raises is the law's own matter.
void demand_gradients(const Subject& subject, const Sample& sample, const std::string& way, Observation& observation) {
  const std::string& how = std::ranges::find(ways(), way, &Way::name)->how;
  const Company company({.gradient = way});
  try {
    const BackwardCall call = call_backward(subject.rung, sample);
    const BackwardOracle oracle = backward_oracle(sample.problem, call.forward.q.view(), call.forward.k.view(),
                                                  call.forward.v.view(), call.dout.view(), subject.part(sample));
    const auto demand = [&](const check::GuardedTensor& found, const Expected& expected) {
      demand_within(how + found.spec().name, found.view(), expected.value,
                    subject.allowed(expected.value, expected.tolerance), observation);
    };
    if (way == "same") {
      const Expected sum = sum_of(subject, oracle);
      demand_within(how + "dq + dk + dv", call.dq.view(), sum.value, sum.tolerance, observation);
      return;
    }
    demand(call.dq, oracle.dq);
    demand(call.dk, oracle.dk);
    demand(call.dv, oracle.dv);
  } catch (const Refusal& raised) {
    property::fail(how + raised.what(), FindingKind::raised, raised.lacks());
  }
}

}  // namespace

// As models hand it over: transposed where heads were joined, and expanded from one number where the output was summed.
// The other ways are asked in addition, so that each of these is tried as often as without them.
void gradient_layouts(const Subject& subject, Observation& observation) {
  Sample sample = subject.draw(Pass::backward);
  const std::string way = property::draw<std::string>("gradient", {"transposed", "expanded", "frozen"});
  const std::string also = property::draw<std::string>("also", {"none", "same", "kept"});
  static_cast<void>(call_backward(subject.rung, sample));  // where that is refused, nothing is asked here
  Sample asked = sample;
  if (way == "expanded") std::fill(asked.dout.begin(), asked.dout.end(), 1.0);
  demand_gradients(subject, asked, way, observation);
  if (also == "kept") demand_gradients(subject, sample, also, observation);
  if (also != "same") return;
  if (const auto alike = with_one_tensor(sample, subject.menu)) {
    subject.remember(*alike);
    demand_gradients(subject, *alike, also, observation);
  }
}

// Queries and keys so long that scores reach about ±1e4, where exp overflows without the running maximum. The hand-out
// lets products round their inputs to ten bits; that moves such a score by about ten and the weights by anything, so
// there the output need only be a number among the values, and L be as near as the scores are.
Sample with_large_scores(Sample sample) {
  const Problem& problem = sample.problem;
  constexpr double kScore = 1e4;
  const double scale = std::abs(problem.effective_scale());
  const auto gain = static_cast<float>(std::sqrt(kScore / (scale * std::sqrt(static_cast<double>(problem.head_dim)))));
  sample.q = query_values(sample, "large q", gain);
  sample.k = key_values(sample, "large k", gain);
  return sample;
}

void large_scores(const Subject& subject, Observation& observation) {
  const Sample sample = with_large_scores(subject.draw(Pass::forward));
  const Problem& problem = sample.problem;
  constexpr double kNarrow = 1e-2;
  const double scale = std::abs(problem.effective_scale());
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
  const Sample sample = subject.draw(Pass::forward);
  if (const auto reason = naive.supports(sample.problem, Pass::forward)) throw Unsupported(*reason);
  const ForwardCall ours = call_forward(subject.rung, sample);
  const ForwardCall theirs = call_forward(naive, sample);
  const ForwardOracle oracle = oracle_of(in_fp32(sample.problem), ours);
  demand_no_worse(ours.out, theirs.out, oracle.out, rounding_of_output(sample, oracle), observation);
}

void half_gradients_no_worse_than_naive(const Subject& subject, Observation& observation) {
  const Rung& naive = find_rung("naive");
  const Sample sample = subject.draw(Pass::backward);
  if (const auto reason = naive.supports(sample.problem, Pass::backward)) throw Unsupported(*reason);
  const BackwardCall ours = call_backward(subject.rung, sample), theirs = call_backward(naive, sample);
  const ForwardCall& forward = ours.forward;
  const BackwardOracle oracle =
      backward_oracle(in_fp32(sample.problem), forward.q.view(), forward.k.view(), forward.v.view(), ours.dout.view());
  const GradientRounding rounding = rounding_of_gradients(sample, oracle);
  const auto demand = [&](const check::GuardedTensor& found, const check::GuardedTensor& yardstick,
                          const Expected& expected, const HalfRounding& of_it) {
    demand_no_worse(found, yardstick, expected, of_it, observation);
    demand_no_bias(found, expected, of_it);
  };
  demand(ours.dq, theirs.dq, oracle.dq, rounding.dq);
  demand(ours.dk, theirs.dk, oracle.dk, rounding.dk);
  demand(ours.dv, theirs.dv, oracle.dv, rounding.dv);
}

}  // namespace syslab::attention
