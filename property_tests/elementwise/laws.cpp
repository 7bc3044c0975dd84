#include "property_tests/elementwise/laws.hpp"

#include "property_tests/operators.hpp"

namespace syslab::elementwise {
namespace {

using check::GuardedTensor;
using check::Observation;
using property::Layout;

constexpr int kRows = 0;

struct Sample {
  Problem problem;
  Layout layout = Layout::contiguous;
  std::uint64_t seed = 0;

  Shape shape() const { return {problem.rows, problem.dim}; }
  std::vector<double> values(const char* name, DType dtype) const {
    return property::random_values(seed, name, problem.rows * problem.dim, dtype);
  }
  GuardedTensor input(const char* name, DType dtype) const {
    return property::input(name, dtype, shape(), strides_of(shape(), layout), values(name, dtype));
  }
  GuardedTensor output(DType dtype) const { return property::output("y", dtype, shape(), strides_of(shape(), layout)); }
};

constexpr std::int64_t kMostOfEach = 3000, kMostElements = 30'000;

Sample draw_sample() {
  Sample sample;
  const std::vector<std::int64_t> sizes = property::sizes_up_to(kMostOfEach);
  sample.problem.dim = property::draw_size("dim", sizes, kMostOfEach);
  sample.problem.rows = property::draw_size("rows", sizes, kMostElements / sample.problem.dim);
  sample.layout = property::draw<Layout>("layout", {Layout::contiguous, Layout::padded, Layout::spaced});
  sample.seed = property::draw_seed();
  return sample;
}

// Rounded once, but fp64 through fp32.
double rounded(DType dtype, double value) {
  return property::rounded_to(dtype, dtype == DType::f64 ? value : static_cast<double>(static_cast<float>(value)));
}

void demand(const GuardedTensor& y, const std::vector<double>& expected, Observation& observation) {
  property::demand_written(y);
  property::demand_equal("y", to_doubles(y.view()), y.spec().shape, expected, observation, kRows);
}

void a_cast_rounds_once(const Rung& rung, Observation& observation) {
  const Sample sample = draw_sample();
  const DType from = property::draw("from", rung.dtypes), to = property::draw("to", rung.dtypes);
  GuardedTensor x = sample.input("x", from), y = sample.output(to);
  property::OnDevice there(rung.device);
  rung.cast(sample.problem, {there.view(x), there.view(y)}, there.stream());
  there.finish();
  std::vector<double> expected = sample.values("x", from);
  property::demand_untouched(x, expected);
  for (double& value : expected) value = rounded(to, value);
  demand(y, expected, observation);
}

void a_sum_rounds_once(const Rung& rung, Observation& observation) {
  const Sample sample = draw_sample();
  const DType left = property::draw("a", rung.dtypes), right = property::draw("b", rung.dtypes);
  const DType both = promoted(left, right);
  const bool wide = property::draw_below("fp32 sum", 2) == 1 && both != DType::f64;
  const DType to = wide ? DType::f32 : both;
  GuardedTensor a = sample.input("a", left), b = sample.input("b", right), y = sample.output(to);
  property::OnDevice there(rung.device);
  rung.add(sample.problem, {there.view(a), there.view(b), there.view(y)}, there.stream());
  there.finish();
  const std::vector<double> of_a = sample.values("a", left), of_b = sample.values("b", right);
  property::demand_untouched(a, of_a);
  property::demand_untouched(b, of_b);
  std::vector<double> expected(of_a.size());
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = rounded(to, of_a[i] + of_b[i]);
  demand(y, expected, observation);
}

void a_fill_writes_all(const Rung& rung, Observation& observation) {
  const Sample sample = draw_sample();
  const DType dtype = property::draw("dtype", rung.dtypes);
  const auto value = property::draw<double>("value", {0, 1, -2.5, 0.1});
  GuardedTensor y = sample.output(dtype);
  property::OnDevice there(rung.device);
  rung.fill(sample.problem, {value, there.view(y)}, there.stream());
  there.finish();
  demand(y, std::vector<double>(static_cast<std::size_t>(y.spec().shape.elements()), rounded(dtype, value)),
         observation);
}

struct Entry {
  const char* id;
  const char* statement;
  void (*body)(const Rung&, Observation&);
  bool against_oracle = false;
};

constexpr Entry kEntries[] = {
    {"elementwise.a_cast_rounds_once", "a cast gives each element rounded once, and writes nothing else",
     a_cast_rounds_once},
    {"elementwise.a_sum_rounds_once", "a sum gives each pair added in fp32 and rounded once, and writes nothing else",
     a_sum_rounds_once},
    {"elementwise.a_fill_writes_all", "a fill writes every element, and nothing else", a_fill_writes_all},
};

}  // namespace

std::vector<check::Law> laws(const Rung& rung) {
  return property::bound(kEntries, rung, property::search_rung<Entry, Rung>);
}

std::string never_drawn(const Rung& rung) {
  return property::all_left_out(rung.dtypes, {property::above("rows", kMostOfEach), property::above("dim", kMostOfEach),
                                              property::above("elements", kMostElements), "inputs with inf or NaN"});
}

std::vector<LawInfo> law_list() { return property::statements(kEntries); }

}  // namespace syslab::elementwise
