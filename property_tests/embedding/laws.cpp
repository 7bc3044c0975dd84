#include "property_tests/embedding/laws.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/embedding/oracle.hpp"
#include "property_tests/operators.hpp"

namespace syslab::embedding {
namespace {

using check::GuardedTensor;
using check::Observation;
using property::demand_within;
using property::Layout;

constexpr int kRows = 0;  // the dimension that is cut

// Which ids come: all alike, few of them often, one alone.
enum class Ids { any, few, one };
void showValue(Ids ids, std::ostream& stream) { stream << (ids == Ids::any ? "any" : ids == Ids::few ? "few" : "one"); }

struct Sample {
  Problem problem;
  Layout layout = Layout::contiguous;
  std::uint64_t seed = 0;
  std::vector<std::int64_t> ids;
  std::vector<double> table, dx;

  Shape table_shape() const { return {problem.vocab, problem.dim}; }
  Shape x_shape() const { return {problem.rows, problem.dim}; }
  ConstTensorView exact(const std::vector<double>& values, const Shape& shape) const {
    return {values.data(), DType::f64, shape};
  }
};

constexpr std::int64_t kMost = 2000, kMostDim = 600, kMostOfX = 30'000, kMostOfTable = 20'000;

Sample draw_sample(const Rung& rung) {
  Sample sample;
  Problem& problem = sample.problem;
  problem.x_dtype = property::draw("dtype", rung.dtypes);
  const bool half = size_of(problem.x_dtype) == 2;
  problem.table_dtype = half && property::draw_below("fp32 table", 2) == 1 ? DType::f32 : problem.x_dtype;
  const std::vector<std::int64_t> sizes = property::sizes_up_to(kMost);
  problem.dim = property::draw_size("dim", sizes, kMostDim);
  problem.rows = property::draw_size("rows", sizes, kMostOfX / problem.dim);
  problem.vocab = property::draw_size("vocab", sizes, kMostOfTable / problem.dim);
  sample.layout = property::draw<Layout>("layout", {Layout::contiguous, Layout::padded, Layout::spaced});
  const Ids ids = property::draw<Ids>("ids", {Ids::any, Ids::few, Ids::one});
  sample.seed = property::draw_seed();
  const RandomStream stream = RandomStream::derive(sample.seed, "embedding", "law", "ids");
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    const std::int64_t drawn = stream.bits(static_cast<std::uint64_t>(i));
    const std::int64_t among = ids == Ids::any   ? problem.vocab
                               : ids == Ids::few ? std::min<std::int64_t>(problem.vocab, 5)
                                                 : 1;
    sample.ids.push_back((drawn % among * 37 + static_cast<std::int64_t>(sample.seed)) % problem.vocab);
  }
  sample.table = property::random_values(sample.seed, "table", problem.vocab * problem.dim, problem.table_dtype);
  sample.dx = property::random_values(sample.seed, "dx", problem.rows * problem.dim, problem.x_dtype);
  return sample;
}

struct Call {
  GuardedTensor ids, table, x, dx, dtable;
};

// Forward and backward; with `before`, the gradient is added to it.
Call call(const Rung& rung, const Sample& sample, const std::vector<double>* before = nullptr) {
  const Problem& p = sample.problem;
  const Strides table = strides_of(sample.table_shape(), sample.layout),
                x = strides_of(sample.x_shape(), sample.layout);
  Call made{property::whole_numbers("ids", sample.ids),
            property::input("table", p.table_dtype, sample.table_shape(), table, sample.table),
            property::output("x", p.x_dtype, sample.x_shape(), x),
            property::input("dx", p.x_dtype, sample.x_shape(), x, sample.dx),
            before == nullptr ? property::output("dtable", p.gradient(), sample.table_shape(), table)
                              : property::input("dtable", p.gradient(), sample.table_shape(), table, *before)};
  property::OnDevice there(rung.device);
  const std::int64_t* ids = property::as_whole_numbers(there.view(made.ids));
  const property::Scratch forward(rung.workspace_bytes(p, Pass::forward), there.stream()),
      backward(rung.workspace_bytes(p, Pass::backward), there.stream());
  rung.forward(p, {ids, there.view(made.table), there.view(made.x)}, forward, there.stream());
  rung.backward(p, {ids, there.view(made.dx), there.view(made.dtable), before != nullptr}, backward, there.stream());
  there.finish();
  return made;
}

void demand(const char* name, const GuardedTensor& found, const Expected& expected, Observation& observation) {
  demand_within(name, found.view(), expected.value, expected.tolerance, observation, kRows);
}

void equals_oracle(const Rung& rung, Observation& observation) {
  const Sample sample = draw_sample(rung);
  const Call made = call(rung, sample);
  demand("x", made.x, forward_oracle(sample.problem, sample.ids, sample.exact(sample.table, sample.table_shape())),
         observation);
  demand("dtable", made.dtable, backward_oracle(sample.problem, sample.ids, sample.exact(sample.dx, sample.x_shape())),
         observation);
}

void accumulates(const Rung& rung, Observation& observation) {
  const Sample sample = draw_sample(rung);
  const std::vector<double> before = property::random_values(
      sample.seed, "before", sample.problem.vocab * sample.problem.dim, sample.problem.gradient());
  const Call made = call(rung, sample, &before);
  demand("dtable", made.dtable,
         backward_oracle(sample.problem, sample.ids, sample.exact(sample.dx, sample.x_shape()),
                         sample.exact(before, sample.table_shape())),
         observation);
}

// Tokens that are a permutation of the ids: each row of the gradient is one row of dx, to the bit.
void permutation(const Rung& rung, Observation& observation) {
  Sample sample = draw_sample(rung);
  Problem& p = sample.problem;
  p.rows = p.vocab;
  const std::int64_t shift = property::draw_below("rotate_by", 256);
  sample.ids.clear();
  for (std::int64_t i = 0; i < p.rows; ++i) sample.ids.push_back((p.rows - 1 - i + shift) % p.vocab);
  sample.dx = property::random_values(sample.seed, "dx", p.rows * p.dim, p.x_dtype);
  const Call made = call(rung, sample);
  std::vector<double> expected(sample.dx.size());
  for (std::int64_t i = 0; i < p.rows; ++i) {
    std::copy_n(sample.dx.begin() + i * p.dim, p.dim,
                expected.begin() + sample.ids[static_cast<std::size_t>(i)] * p.dim);
  }
  property::demand_equal("dtable", to_doubles(made.dtable.view()), sample.table_shape(), expected, observation, kRows);
}

// The order of tokens of other ids does not matter, that of equal ones is kept: swapping neighbours of different ids
// changes no bit.
void other_tokens_do_not_matter(const Rung& rung, Observation& observation) {
  const Sample sample = draw_sample(rung);
  Sample swapped = sample;
  for (std::size_t i = 0; i + 1 < sample.ids.size(); i += 2) {
    if (sample.ids[i] == sample.ids[i + 1]) continue;
    std::swap(swapped.ids[i], swapped.ids[i + 1]);
    const auto row = swapped.dx.begin() + static_cast<std::ptrdiff_t>(i) * sample.problem.dim;
    std::swap_ranges(row, row + sample.problem.dim, row + sample.problem.dim);
  }
  const Call before = call(rung, sample), after = call(rung, swapped);
  property::demand_equal("with neighbours swapped: dtable", to_doubles(after.dtable.view()), sample.table_shape(),
                         to_doubles(before.dtable.view()), observation, kRows);
}

void ids_outside_count_nowhere(const Rung& rung, Observation& observation) {
  Sample sample = draw_sample(rung);
  const auto row = static_cast<std::size_t>(property::draw_below("row", sample.problem.rows));
  sample.ids[row] = property::draw<std::int64_t>("id", {-1, sample.problem.vocab, INT64_MIN, INT64_MAX});
  const Call made = call(rung, sample);
  demand("dtable", made.dtable, backward_oracle(sample.problem, sample.ids, sample.exact(sample.dx, sample.x_shape())),
         observation);
  const std::vector<double> x = to_doubles(made.x.view());
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) != (i / static_cast<std::size_t>(sample.problem.dim) == row)) {
      property::fail("x is NaN in the wrong rows");
    }
  }
}

void writes_nothing_outside(const Rung& rung, Observation&) {
  const Sample sample = draw_sample(rung);
  const Call made = call(rung, sample);
  property::demand_untouched(made.table, sample.table);
  property::demand_untouched(made.dx, sample.dx);
  property::demand_unharmed(made.ids);
  property::demand_written(made.x);
  property::demand_written(made.dtable);
}

struct Entry {
  const char* id;
  const char* statement;
  void (*body)(const Rung&, Observation&);
  bool against_oracle = false;
};

constexpr Entry kEntries[] = {
    {"embedding.equals_oracle", "rows and the table's gradient are within their derived bounds", equals_oracle, true},
    {"embedding.accumulates", "a gradient may be added to what is there", accumulates, true},
    {"embedding.permutation", "the gradient of tokens that are a permutation is dx permuted", permutation},
    {"embedding.other_tokens_do_not_matter", "swapping neighbours of different ids changes no bit of the gradient",
     other_tokens_do_not_matter},
    {"embedding.ids_outside_count_nowhere", "an id outside the table gives a row of NaN and no gradient",
     ids_outside_count_nowhere, true},
    {"embedding.writes_nothing_outside", "only the outputs are written, and all of them", writes_nothing_outside},
};

}  // namespace

std::vector<check::Law> laws(const Rung& rung) {
  return property::bound(kEntries, rung, property::search_rung<Entry, Rung>);
}

std::string never_drawn(const Rung& rung) {
  return property::all_left_out(
      rung.dtypes, {property::above("rows", kMost), property::above("vocab", kMost), property::above("dim", kMostDim),
                    property::above("elements of x", kMostOfX), property::above("elements of table", kMostOfTable),
                    "inputs with inf or NaN"});
}

std::vector<LawInfo> law_list() { return property::statements(kEntries); }

}  // namespace syslab::embedding
