// The law of rows that are no ordinary numbers: what is in one row stays in it.
//
// Asked is only what every right kernel does, whatever the order of its sums. A query of NaN, infinity or 1e4 is the
// matter of its own row; what that row becomes is asked where mathematics says it: NaN is not, since a running maximum
// may pass over it. A NaN among the values comes out of its own column, in the rows that see its key, and reaches no
// log-sum-exp; a row that must not see it may still multiply it by zero, so that is not asked. Rows of zeros, and of
// numbers below the smallest normal one, have scores of zero.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "ops/attention/oracle/oracle.hpp"
#include "property_tests/attention/call.hpp"
#include "property_tests/attention/law_bodies.hpp"
#include "property_tests/draw.hpp"
#include "property_tests/verdict.hpp"

namespace syslab::attention {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kEndless = std::numeric_limits<double>::infinity();
constexpr std::string_view kZeros = "zero rows", kDenormal = "denormal rows", kHuge = "a query of 1e4",
                           kInfinity = "an infinite query", kNoNumber = "a query of NaN", kNoValue = "a value of NaN";

// One element of a tensor (batch, heads, rows, columns).
struct Place {
  std::int64_t head, row, column;  // head: batch entries and heads counted through
  std::size_t element(std::int64_t rows, std::int64_t columns) const {
    return static_cast<std::size_t>((head * rows + row) * columns + column);
  }
};

Place draw_place(std::int64_t heads, std::int64_t rows, std::int64_t columns) {
  return {property::draw_below("strange_head", 64) % heads, property::draw_below("strange_row", 256) % rows,
          property::draw_below("strange_column", 64) % columns};
}

// Every third row from `first` on, times `factor`.
void scale_rows(std::vector<double>& values, std::int64_t width, std::int64_t first, double factor, DType dtype) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t row = static_cast<std::int64_t>(i) / width;
    if (row % 3 == first) values[i] = property::rounded_to(dtype, factor * values[i]);
  }
}

double below_normal(DType dtype) { return dtype == DType::f16 ? 1e-6 : 1e-40; }

void forget(std::vector<double>& expected, std::int64_t first, std::int64_t count) {
  std::fill_n(expected.begin() + first, count, kNaN);  // a NaN is not compared
}

// The elements that the NaN at `at` among the values must reach.
void demand_nan(const Sample& sample, const Place& at, const std::vector<double>& out) {
  const Problem& problem = sample.problem;
  const std::int64_t per_kv = problem.heads_q / problem.heads_kv, first = at.head * per_kv;
  for (std::int64_t head = first; head < first + per_kv; ++head) {
    for (std::int64_t row = 0; row < problem.seq_q; ++row) {
      const double found = out[Place{head, row, at.column}.element(problem.seq_q, problem.head_dim)];
      if (problem.visible_keys(row) <= at.row || std::isnan(found)) continue;
      property::fail(
          fmt::format("out[{}, {}, {}, {}] is {:.6g}, and it sees the value of key {}, which is NaN there: what is no "
                      "number must not come out as one",
                      head / problem.heads_q, head % problem.heads_q, row, at.column, found, at.row));
    }
  }
}

}  // namespace

void strange_rows(const Subject& subject, check::Observation& observation) {
  const Sample plain = subject.draw(Pass::forward);
  const Problem& problem = plain.problem;
  const auto strange =
      property::draw<std::string>("strange", {std::string(kZeros), std::string(kDenormal), std::string(kHuge),
                                              std::string(kInfinity), std::string(kNoNumber), std::string(kNoValue)});
  const bool of_values = strange == kNoValue;
  const std::int64_t rows = of_values ? problem.seq_k : problem.seq_q, width = problem.head_dim;
  const Place at = draw_place(problem.batch * (of_values ? problem.heads_kv : problem.heads_q), rows, width);

  // What the oracle is asked: without NaN and infinity, whose rows are not compared with it.
  Sample asked = plain;
  if (strange == kZeros || strange == kDenormal) {
    const double factor = strange == kZeros ? 0.0 : below_normal(problem.dtype);
    scale_rows(asked.q, width, at.row % 3, factor, problem.dtype);
    scale_rows(asked.k, width, at.column % 3, factor, problem.dtype);
  } else if (strange == kHuge) {
    for (std::int64_t d = 0; d < width; ++d) {
      double& value = asked.q[Place{at.head, at.row, d}.element(rows, width)];
      value = std::clamp(1e4 * value, -6e4, 6e4);
      value = property::rounded_to(problem.dtype, value);
    }
  }
  Sample sample = asked;
  const std::size_t element = at.element(rows, width);
  if (strange == kInfinity) sample.q[element] = kEndless;
  if (strange == kNoNumber) sample.q[element] = kNaN;
  if (of_values) sample.v[element] = kNaN;

  const auto tensor = [&](const char* name, const Shape& shape, const std::vector<double>& values) {
    return property::input(name, problem.dtype, shape, contiguous_strides(shape), values);
  };
  const check::GuardedTensor q = tensor("q", asked.query_shape(), asked.q), k = tensor("k", asked.key_shape(), asked.k),
                             v = tensor("v", asked.key_shape(), asked.v);
  ForwardOracle oracle = forward_oracle(problem, q.view(), k.view(), v.view(), subject.part(problem));
  const ForwardCall call = call_forward(subject.rung, sample);
  const bool is_row = strange == kInfinity || strange == kNoNumber || (strange == kHuge && subject.wide());
  if (is_row) {
    const std::int64_t row = at.head * rows + at.row;
    forget(oracle.out.value, row * width, width);
    forget(oracle.lse.value, row, 1);
  }
  if (of_values) {
    demand_nan(sample, at, to_doubles(call.out.view()));
    const std::int64_t per_kv = problem.heads_q / problem.heads_kv;
    for (std::int64_t row = at.head * per_kv * problem.seq_q; row < (at.head + 1) * per_kv * problem.seq_q; ++row) {
      forget(oracle.out.value, row * width + at.column, 1);
    }
  }
  const auto demand = [&](const char* name, const check::GuardedTensor& found, const Expected& expected) {
    // A single row that is strange leaves nothing to compare.
    if (std::ranges::all_of(expected.value, [](double value) { return std::isnan(value); })) return;
    property::demand_within(fmt::format("with {}: {}", strange, name), found.view(), expected.value,
                            subject.allowed(expected.value, expected.tolerance), observation);
  };
  demand("out", call.out, oracle.out);
  demand("lse", call.lse, oracle.lse);
}

}  // namespace syslab::attention
