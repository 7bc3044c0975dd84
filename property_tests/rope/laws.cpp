#include "property_tests/rope/laws.hpp"

#include <algorithm>
#include <cmath>

#include "check/search.hpp"
#include "ops/rope/eager.hpp"
#include "property_tests/contracted.hpp"
#include "property_tests/draw.hpp"
#include "property_tests/on_device.hpp"
#include "property_tests/tensors.hpp"
#include "property_tests/verdict.hpp"

namespace syslab::rope {

void showValue(Layout layout, std::ostream& stream) { stream << to_string(layout); }

namespace {

using check::Contract;
using check::GuardedTensor;
using check::Observation;
using property::demand_within;

constexpr int kPositions = 2;
constexpr std::int64_t kMostElements = 20'000;  // of x
constexpr std::int64_t kMostBatch = 3, kMostHeads = 12, kMostSeq = 200, kMostHeadDim = 160;
constexpr std::int64_t kMostMoreRows = 64;  // of the tables, behind those of the sequence

using Subject = property::Contracted<Rung>;

struct Sample {
  Problem problem;
  property::Layout strides = property::Layout::contiguous;
  std::int64_t table_rows = 1;
  std::vector<double> x, dy, cos, sin;

  Shape shape() const { return {problem.batch, problem.heads, problem.seq, problem.head_dim}; }
  Shape table() const { return {table_rows, problem.head_dim / 2}; }
  // Of pair k of the head at row-major index `head` over (batch, heads, seq), where it lies in a layout.
  std::size_t first(std::int64_t head, std::int64_t k, Layout layout) const {
    return static_cast<std::size_t>(head * problem.head_dim + (layout == Layout::interleaved ? 2 * k : k));
  }
  std::size_t second(std::int64_t head, std::int64_t k, Layout layout) const {
    return first(head, k, layout) + static_cast<std::size_t>(layout == Layout::interleaved ? 1 : problem.head_dim / 2);
  }
  std::int64_t all_heads() const { return problem.batch * problem.heads * problem.seq; }
};

std::vector<DType> dtypes_of(const Rung& rung, Pass pass) {
  std::vector<DType> dtypes;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    if (!rung.supports(Problem{.x_dtype = dtype, .y_dtype = dtype}, pass)) dtypes.push_back(dtype);
  }
  return dtypes;
}

Sample draw_sample(const Subject& subject, Pass pass) {
  const bool handout = subject.contract == Contract::handout;
  const std::vector<std::int64_t> powers{16, 32, 64, 128};
  Sample sample;
  Problem& p = sample.problem;
  p.x_dtype = property::draw("dtype", dtypes_of(subject.rung, pass));
  const bool widen = property::draw<bool>("fp32_out", {false, true});
  p.y_dtype = widen && p.x_dtype != DType::f64 ? DType::f32 : p.x_dtype;
  p.layout = property::draw<Layout>("layout", {Layout::interleaved, Layout::halves});
  std::vector<std::int64_t> evens;
  for (std::int64_t n = 2; n <= kMostHeadDim; n += 2) evens.push_back(n);
  p.head_dim = handout ? property::draw("head_dim", powers) : property::draw_size("head_dim", evens, kMostHeadDim);
  p.heads = property::draw_size("heads", property::sizes_up_to(kMostHeads), kMostHeads);
  p.batch = property::draw_size("batch", property::sizes_up_to(kMostBatch), kMostBatch);
  p.seq = property::draw_size("seq", handout ? powers : property::sizes_up_to(kMostSeq),
                              kMostElements / (p.head_dim * p.heads * p.batch));
  sample.strides = property::draw<property::Layout>(
      "strides", handout
                     ? std::vector{property::Layout::contiguous}
                     : std::vector{property::Layout::contiguous, property::Layout::padded, property::Layout::swapped});
  // Tables are made once for the longest context: half of the calls are for fewer positions.
  sample.table_rows = p.seq + property::draw<std::int64_t>("more_table_rows", {0, 1, 0, 7, 0, kMostMoreRows});
  const std::uint64_t seed = property::draw_seed();
  RC_PRE(!subject.rung.supports(p, pass).has_value());
  sample.x = property::random_values(seed, "x", sample.shape().elements(), p.x_dtype);
  sample.dy = property::random_values(seed, "dy", sample.shape().elements(), p.y_dtype);
  sample.cos.resize(static_cast<std::size_t>(sample.table().elements()));
  sample.sin = sample.cos;
  fill_tables(sample.table_rows, p.head_dim, 10000, TensorView(sample.cos.data(), DType::f64, sample.table()),
              TensorView(sample.sin.data(), DType::f64, sample.table()));
  for (std::vector<double>* table : {&sample.cos, &sample.sin}) {
    for (double& value : *table) value = property::rounded_to(p.tables(), value);
  }
  return sample;
}

struct Call {
  GuardedTensor x, cos, sin, y;
};

Call call(const Rung& rung, const Sample& s, Pass pass, const std::vector<double>& x) {
  const Problem& p = s.problem;
  const bool forward = pass == Pass::forward;
  const Strides strides = strides_of(s.shape(), s.strides);
  Call made{property::input("x", forward ? p.x_dtype : p.y_dtype, s.shape(), strides, x),
            property::input("cos", p.tables(), s.table(), contiguous_strides(s.table()), s.cos),
            property::input("sin", p.tables(), s.table(), contiguous_strides(s.table()), s.sin),
            property::output("y", forward ? p.y_dtype : p.x_dtype, s.shape(), strides)};
  property::OnDevice there(rung.device);
  const Args args{there.view(made.x), there.view(made.cos), there.view(made.sin), there.view(made.y)};
  validate(p, args, pass);
  (forward ? rung.forward : rung.backward)(p, args, {}, there.stream());
  there.finish();
  return made;
}

// With what a rung that goes operation by operation may add by rounding between them.
Expected expected(const Rung& rung, const Sample& s, Pass pass, const std::vector<double>& x) {
  const auto view = [](const std::vector<double>& values, const Shape& shape) {
    return ConstTensorView(values.data(), DType::f64, shape);
  };
  const ConstTensorView values = view(x, s.shape()), cos = view(s.cos, s.table()), sin = view(s.sin, s.table());
  Expected exact = oracle(s.problem, pass, values, cos, sin);
  if (rung.op_by_op) eager_allow(s.problem, pass, values, cos, sin, exact);
  return exact;
}

void equals_oracle(const Subject& subject, Observation& observation) {
  const Sample s = draw_sample(subject, Pass::forward);
  const Expected y = expected(subject.rung, s, Pass::forward, s.x);
  demand_within("y", call(subject.rung, s, Pass::forward, s.x).y.view(), y.value, subject.allowed(y), observation,
                kPositions);
}

void gradient_equals_oracle(const Subject& subject, Observation& observation) {
  const Sample s = draw_sample(subject, Pass::backward);
  const Expected dx = expected(subject.rung, s, Pass::backward, s.dy);
  demand_within("dx", call(subject.rung, s, Pass::backward, s.dy).y.view(), dx.value, subject.allowed(dx), observation,
                kPositions);
}

// |(out₁, out₂)| = |(x₁, x₂)| but for how far the rounded cos² + sin² is from 1.
void keeps_norms(const Subject& subject, Observation& observation) {
  const Sample s = draw_sample(subject, Pass::forward);
  const std::vector<double> y = to_doubles(call(subject.rung, s, Pass::forward, s.x).y.view()),
                            allowed = subject.allowed(expected(subject.rung, s, Pass::forward, s.x));
  const double of_tables = 4 * unit_roundoff(s.problem.tables());
  const std::int64_t pairs = s.problem.head_dim / 2;
  std::vector<double> found, norms, bound;
  for (std::int64_t head = 0; head < s.all_heads(); ++head) {
    for (std::int64_t k = 0; k < pairs; ++k) {
      const std::size_t one = s.first(head, k, s.problem.layout), two = s.second(head, k, s.problem.layout);
      found.push_back(std::hypot(y[one], y[two]));
      norms.push_back(
          std::hypot(s.x[s.first(head, k, Layout::interleaved)], s.x[s.second(head, k, Layout::interleaved)]));
      bound.push_back(std::hypot(allowed[one], allowed[two]) + of_tables * norms.back());
    }
  }
  demand_within("norm of a pair of y", found, {s.all_heads(), pairs}, norms, bound, observation, 0);
}

void backward_undoes_forward(const Subject& subject, Observation& observation) {
  const Sample s = draw_sample(subject, Pass::forward);
  RC_PRE(!subject.rung.supports(s.problem, Pass::backward).has_value());
  const Expected e = expected(subject.rung, s, Pass::forward, s.x);
  const std::vector<double> y = to_doubles(call(subject.rung, s, Pass::forward, s.x).y.view()),
                            error = subject.allowed(e),
                            allowed = subject.allowed(expected(subject.rung, s, Pass::backward, y));
  std::vector<double> bound(s.x.size());
  for (std::int64_t head = 0; head < s.all_heads(); ++head) {
    for (std::int64_t k = 0; k < s.problem.head_dim / 2; ++k) {
      const std::size_t one = s.first(head, k, s.problem.layout), two = s.second(head, k, s.problem.layout);
      const double brought = error[one] + error[two];  // |cos|, |sin| ≤ 1
      for (const std::size_t at : {s.first(head, k, Layout::interleaved), s.second(head, k, Layout::interleaved)}) {
        bound[at] = allowed[at] + brought + 4 * unit_roundoff(s.problem.tables()) * std::abs(s.x[at]);
      }
    }
  }
  demand_within("turned and turned back: x", call(subject.rung, s, Pass::backward, y).y.view(), s.x, bound, observation,
                kPositions);
}

// The same query and key at every position: their score at positions (i, j) is that at (i + 1, j + 1).
void scores_follow_distance(const Subject& subject, Observation& observation) {
  Sample s = draw_sample(subject, Pass::forward);
  const Problem& p = s.problem;
  const std::int64_t half = p.head_dim / 2;
  RC_PRE(p.seq >= 2);
  for (std::int64_t head = 0; head < s.all_heads(); ++head) {
    std::copy_n(s.x.begin() + head / p.seq * p.seq * p.head_dim, p.head_dim, s.x.begin() + head * p.head_dim);
  }
  const std::vector<double> y = to_doubles(call(subject.rung, s, Pass::forward, s.x).y.view());
  const Expected e = expected(subject.rung, s, Pass::forward, s.x);
  const std::vector<double> error = subject.allowed(e);
  // The first head asks, the last is asked.
  const std::int64_t query = 0, key = s.all_heads() - p.seq, distance = std::min<std::int64_t>(p.seq - 2, 3);
  std::vector<double> found, wanted, bound;
  double before = 0, slack_before = 0;
  for (std::int64_t i = 0; i + distance < p.seq; ++i) {
    double score = 0, slack = 0;
    for (std::int64_t d = 0; d < p.head_dim; ++d) {
      const auto q = static_cast<std::size_t>((query + i) * p.head_dim + d),
                 k = static_cast<std::size_t>((key + i + distance) * p.head_dim + d);
      score += y[q] * y[k];
      slack += error[q] * std::abs(y[k]) + error[k] * std::abs(y[q]) + error[q] * error[k];
    }
    // The tables' own rounding: an angle's cosine and sine are each off by half a unit, four of them in a product.
    double sizes = 0;
    for (std::int64_t n = 0; n < half; ++n) {
      sizes += std::hypot(s.x[s.first(query, n, Layout::interleaved)], s.x[s.second(query, n, Layout::interleaved)]) *
               std::hypot(s.x[s.first(key, n, Layout::interleaved)], s.x[s.second(key, n, Layout::interleaved)]);
    }
    slack += 8 * unit_roundoff(p.tables()) * sizes + static_cast<double>(p.head_dim) * 0x1p-50 * sizes;
    // In double the angles themselves differ: position · frequency is rounded.
    slack += static_cast<double>(p.seq) * 0x1p-51 * sizes;
    if (i > 0) {
      found.push_back(score);
      wanted.push_back(before);
      bound.push_back(slack + slack_before);
    }
    before = score;
    slack_before = slack;
  }
  demand_within("score one position on", found, {static_cast<std::int64_t>(found.size())}, wanted, bound, observation,
                0);
}

// The same numbers, elsewhere.
void layouts_agree(const Subject& subject, Observation& observation) {
  Sample s = draw_sample(subject, Pass::forward);
  s.problem.layout = Layout::halves;
  const std::vector<double> halves = to_doubles(call(subject.rung, s, Pass::forward, s.x).y.view());
  s.problem.layout = Layout::interleaved;
  const Call interleaved = call(subject.rung, s, Pass::forward, s.x);
  std::vector<double> moved(halves.size()), bound{0.0};
  for (std::int64_t head = 0; head < s.all_heads(); ++head) {
    for (std::int64_t k = 0; k < s.problem.head_dim / 2; ++k) {
      moved[s.first(head, k, Layout::interleaved)] = halves[s.first(head, k, Layout::halves)];
      moved[s.second(head, k, Layout::interleaved)] = halves[s.second(head, k, Layout::halves)];
    }
  }
  if (subject.contract == Contract::handout || !subject.rung.deterministic) {
    bound = subject.allowed(expected(subject.rung, s, Pass::forward, s.x));
    for (double& width : bound) width *= 2;
  }
  demand_within("in the other layout: y", interleaved.y.view(), moved, bound, observation, kPositions);
}

void writes_nothing_outside(const Subject& subject, Observation&) {
  const Sample s = draw_sample(subject, Pass::forward);
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    if (subject.rung.supports(s.problem, pass)) continue;
    const std::vector<double>& x = pass == Pass::forward ? s.x : s.dy;
    const Call made = call(subject.rung, s, pass, x);
    property::demand_untouched(made.x, x, kPositions);
    property::demand_untouched(made.cos, s.cos, kPositions);
    property::demand_untouched(made.sin, s.sin, kPositions);
    property::demand_written(made.y);
  }
}

constexpr property::ContractedLaw<Rung> kEntries[] = {
    {"rope.equals_oracle", "y is within its derived bound", equals_oracle, true},
    {"rope.gradient_equals_oracle", "dx is within its derived bound", gradient_equals_oracle, true},
    {"rope.keeps_norms", "a pair is as long after its turn as before", keeps_norms},
    {"rope.backward_undoes_forward", "turned and turned back, x is x", backward_undoes_forward},
    {"rope.scores_follow_distance", "a score depends on the distance of two positions alone", scores_follow_distance},
    {"rope.layouts_agree", "both layouts hold the same numbers", layouts_agree},
    {"rope.writes_nothing_outside", "only the output is written, and all of it", writes_nothing_outside},
};

}  // namespace

std::vector<check::Law> laws(const Rung& rung) {
  return property::bound(kEntries, rung, property::search_contracted<Rung>);
}

std::string never_drawn(const Rung& rung) {
  return property::all_left_out(
      dtypes_of(rung, Pass::forward),
      {property::above("batch", kMostBatch), property::above("heads", kMostHeads), property::above("seq", kMostSeq),
       property::above("head_dim", kMostHeadDim), property::above("elements of x", kMostElements),
       property::above("rows of cos and sin behind seq", kMostMoreRows),
       "other tables than those of theta = 10000 from position 0 on", "inputs with inf or NaN"});
}

std::vector<LawInfo> law_list() { return property::statements(kEntries); }

}  // namespace syslab::rope
