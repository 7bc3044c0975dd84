// Laws that ask the same rung twice: what must not matter does not matter, and nothing is written but the outputs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/refusal.hpp"
#include "ops/attention/oracle/oracle.hpp"
#include "property_tests/attention/call.hpp"
#include "property_tests/attention/law_bodies.hpp"
#include "property_tests/draw.hpp"
#include "property_tests/verdict.hpp"

namespace syslab::attention {
namespace {

using check::Observation;

// Two results of equal mathematics: equal to the last bit where the rung is exact, else within both their bounds.
std::vector<double> twice(const Subject& subject, const Expected& oracle) {
  if (subject.exact()) return {0.0};
  std::vector<double> tolerance = subject.allowed(oracle.value, oracle.tolerance);
  for (double& bound : tolerance) bound *= 2;
  return tolerance;
}

ForwardOracle oracle_of(const Subject& subject, const Sample& sample) {
  const DType dtype = sample.problem.dtype;
  const auto tensor = [dtype](std::string_view name, const Shape& shape, const std::vector<double>& values) {
    return property::input(name, dtype, shape, contiguous_strides(shape), values);
  };
  const check::GuardedTensor q = tensor("q", sample.query_shape(), sample.q);
  const check::GuardedTensor k = tensor("k", sample.key_shape(), sample.k);
  const check::GuardedTensor v = tensor("v", sample.key_shape(), sample.v);
  return forward_oracle(sample.problem, q.view(), k.view(), v.view(), subject.part(sample.problem));
}

void demand_same(const Subject& subject, const Sample& sample, const ForwardValues& found,
                 const ForwardValues& expected, const std::string& after, Observation& observation) {
  const ForwardOracle oracle = subject.exact() ? ForwardOracle{} : oracle_of(subject, sample);
  property::demand_within(after + ": out", found.out, sample.query_shape(), expected.out, twice(subject, oracle.out),
                          observation);
  property::demand_within(after + ": lse", found.lse, sample.lse_shape(), expected.lse, twice(subject, oracle.lse),
                          observation);
}

// Blocks of `width` values, each moved from where `source` says.
std::vector<double> gather(const std::vector<double>& values, std::int64_t width,
                           const std::vector<std::int64_t>& source) {
  std::vector<double> moved;
  moved.reserve(values.size());
  for (const std::int64_t from : source) {
    const auto begin = values.begin() + from * width;
    moved.insert(moved.end(), begin, begin + width);
  }
  return moved;
}

// Applies one permutation to the (batch, head) blocks of the inputs and of the outputs.
void demand_permutable(const Subject& subject, const Sample& sample, const std::vector<std::int64_t>& query_source,
                       const std::vector<std::int64_t>& key_source, const std::string& after,
                       Observation& observation) {
  const Problem& problem = sample.problem;
  const std::int64_t query_width = problem.seq_q * problem.head_dim, key_width = problem.seq_k * problem.head_dim;
  Sample permuted = sample;
  permuted.q = gather(sample.q, query_width, query_source);
  permuted.k = gather(sample.k, key_width, key_source);
  permuted.v = gather(sample.v, key_width, key_source);
  const ForwardValues straight = forward_values(subject.rung, sample);
  const ForwardValues found = forward_values(subject.rung, permuted);
  const ForwardValues expected{gather(straight.out, query_width, query_source),
                               gather(straight.lse, problem.seq_q, query_source)};
  demand_same(subject, permuted, found, expected, after, observation);
}

// "0, 1, 16, 3"
std::string place_of(std::int64_t index, const Shape& shape) {
  std::string place;
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    place = fmt::format("{}{}{}", index % shape[dim], place.empty() ? "" : ", ", place);
    index /= shape[dim];
  }
  return place;
}

void demand_same_bits(const check::GuardedTensor& again, const check::GuardedTensor& first, Observation& observation) {
  const std::vector<double> found = to_doubles(again.view()), expected = to_doubles(first.view());
  if (std::memcmp(found.data(), expected.data(), found.size() * sizeof(double)) == 0) return observation.record(0, 0);
  const std::string name = "second run: " + again.spec().name;
  std::int64_t differ = 0, at = -1;
  bool numbers = false;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::memcmp(&found[i], &expected[i], sizeof(double)) == 0) continue;
    numbers = numbers || (found[i] != expected[i] && !std::isnan(expected[i]));
    if (differ++ == 0) at = static_cast<std::int64_t>(i);
  }
  try {
    if (numbers) property::demand_equal(name, found, again.spec().shape, expected, observation);
  } catch (const FoundFault& differs) {
    const bool finite = differs.finding() == FindingKind::wrong_value;
    property::fail(differs.what(), finite ? FindingKind::kept_state : differs.finding());
  }
  property::fail(
      fmt::format("{}[{}]: found {:.9g}, and {:.9g} before; {} of {} differ in their bits alone, the sign of a "
                  "zero or the payload of a NaN",
                  name, place_of(at, again.spec().shape), found[static_cast<std::size_t>(at)],
                  expected[static_cast<std::size_t>(at)], differ, found.size()),
      FindingKind::kept_state);
}

}  // namespace

// Keys and values that a row may not see get other values; the row, and those before it, stay as they were.
void causal_prefix(const Subject& subject, Observation& observation) {
  Sample sample = subject.draw(Pass::forward);
  const Problem& problem = sample.problem;
  const std::int64_t row = property::draw_below("row", 256) % problem.seq_q;
  const std::int64_t prefix = problem.visible_keys(row);
  ForwardValues before = forward_values(subject.rung, sample);

  const std::vector<double> other_k = key_values(sample, "other k", 4.0F),
                            other_v = key_values(sample, "other v", 4.0F);
  for (std::size_t i = 0; i < sample.k.size(); ++i) {
    const std::int64_t key = static_cast<std::int64_t>(i) / problem.head_dim % problem.seq_k;
    if (key < prefix) continue;
    sample.k[i] = other_k[i];
    sample.v[i] = other_v[i];
  }
  const ForwardValues after = forward_values(subject.rung, sample);
  const auto forget_later_rows = [&](std::vector<double>& values, std::int64_t width) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::int64_t at = static_cast<std::int64_t>(i) / width % problem.seq_q;
      if (at > row) values[i] = std::numeric_limits<double>::quiet_NaN();
    }
  };
  forget_later_rows(before.out, problem.head_dim);
  forget_later_rows(before.lse, 1);
  demand_same(subject, sample, after, before, fmt::format("after keys from {} on changed", prefix), observation);
}

void batch_permutation(const Subject& subject, Observation& observation) {
  const Sample sample = subject.draw(Pass::forward);
  const Problem& problem = sample.problem;
  const std::int64_t shift = 1 + property::draw_below("rotate_by", 3) % (problem.batch - 1);
  const auto rotated = [&](std::int64_t heads) {
    std::vector<std::int64_t> source;
    for (std::int64_t b = 0; b < problem.batch; ++b) {
      for (std::int64_t h = 0; h < heads; ++h) source.push_back((b + shift) % problem.batch * heads + h);
    }
    return source;
  };
  demand_permutable(subject, sample, rotated(problem.heads_q), rotated(problem.heads_kv),
                    fmt::format("after the batch was rotated by {}", shift), observation);
}

// Key/value heads change places and take their query heads along; these change places among themselves too.
void head_permutation(const Subject& subject, Observation& observation) {
  const Sample sample = subject.draw(Pass::forward);
  const Problem& problem = sample.problem;
  const std::int64_t shift = 1 + property::draw_below("rotate_by", 3) % (problem.heads_kv - 1);
  const std::int64_t per_kv = problem.heads_q / problem.heads_kv;
  std::vector<std::int64_t> query_source, key_source;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t group = 0; group < problem.heads_kv; ++group) {
      const std::int64_t from = b * problem.heads_kv + (group + shift) % problem.heads_kv;
      key_source.push_back(from);
      for (std::int64_t h = 0; h < per_kv; ++h) query_source.push_back(from * per_kv + (h + 1) % per_kv);
    }
  }
  demand_permutable(subject, sample, query_source, key_source, fmt::format("after the heads were rotated by {}", shift),
                    observation);
}

bool Subject::asks_backward(const Problem& problem) const {
  if (pass) return *pass == Pass::backward;
  return menu.backward && !rung.supports(problem, Pass::backward);
}

void bitwise_repeatable(const Subject& subject, Observation& observation) {
  const Rung& rung = subject.rung;
  const Sample sample = subject.draw(subject.drawn());
  if (subject.asks_backward(sample.problem)) {
    const BackwardCall first = call_backward(rung, sample), again = call_backward(rung, sample);
    demand_same_bits(again.forward.out, first.forward.out, observation);
    demand_same_bits(again.forward.lse, first.forward.lse, observation);
    demand_same_bits(again.dq, first.dq, observation);
    demand_same_bits(again.dk, first.dk, observation);
    demand_same_bits(again.dv, first.dv, observation);
    return;
  }
  const ForwardCall first = call_forward(rung, sample), again = call_forward(rung, sample);
  demand_same_bits(again.out, first.out, observation);
  demand_same_bits(again.lse, first.lse, observation);
}

// Guards around every tensor, in the gaps of strided ones, and around a workspace of just the size asked for stay
// whole; inputs stay as they were; no element of an output is forgotten.
void writes_nothing_outside(const Subject& subject, Observation&) {
  const Rung& rung = subject.rung;
  const Sample sample = subject.draw(subject.drawn());
  const bool lend = property::draw<bool>("lend_workspace", {false, true});
  const auto demand_read_only = [](const check::GuardedTensor& tensor, const std::vector<double>& values) {
    property::demand_unharmed(tensor);
    Observation ignored;
    property::demand_equal("after the call: input " + tensor.spec().name, to_doubles(tensor.view()),
                           tensor.spec().shape, values, ignored);
  };
  const auto demand_forward = [&](const ForwardCall& call) {
    demand_read_only(call.q, sample.q);
    demand_read_only(call.k, sample.k);
    demand_read_only(call.v, sample.v);
    property::demand_written(call.out);
    property::demand_written(call.lse);
    if (call.workspace) property::demand_unharmed(*call.workspace);
  };
  if (!subject.asks_backward(sample.problem)) {
    demand_forward(call_forward(rung, sample, lend));
    return;
  }
  const BackwardCall call = call_backward(rung, sample, lend);
  demand_forward(call.forward);
  demand_read_only(call.dout, sample.dout);
  property::demand_written(call.dq);
  property::demand_written(call.dk);
  property::demand_written(call.dv);
  if (call.workspace) property::demand_unharmed(*call.workspace);
}

// The one law that an exception or an error status breaks; all others pass over such an input.
void refusal(const Subject& subject, Observation&) {
  const Candidate& rung = subject.rung;
  const bool promised = rung.domain && (subject.contract == check::Contract::handout || rung.domain->bounded());
  Sample sample = subject.draw(subject.drawn(), !promised);
  std::optional<Company> company;
  const std::string how = subject.drawn() == Pass::forward ? draw_use(subject, sample, company) : "";
  const auto refused = [&](const std::string& why, const std::optional<Lack>& lacks = {}) {
    property::fail(fmt::format("refusal of {}: {}{}", to_string(sample.problem), how, why), FindingKind::raised, lacks);
  };
  if (promised) {
    if (const auto reason = rung.supports(sample.problem, subject.drawn())) refused(*reason);
  }
  try {
    subject.drawn() == Pass::forward ? static_cast<void>(call_forward(rung, sample))
                                     : static_cast<void>(call_backward(rung, sample));
  } catch (const Unsupported& reason) {
    if (!promised) throw;
    refused(reason.what());
  } catch (const Refusal& reason) {
    refused(reason.what(), reason.lacks());
  } catch (const Error& error) {  // no room for all scores of a long one is no refusal
    if (error.kind() == ErrorKind::oom && sample.long_both()) throw Unsupported(error.what());
    throw;
  }
}

}  // namespace syslab::attention
