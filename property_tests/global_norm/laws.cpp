#include "property_tests/global_norm/laws.hpp"

#include <cmath>

#include "ops/global_norm/oracle.hpp"
#include "property_tests/operators.hpp"

namespace syslab::global_norm {
namespace {

using check::GuardedTensor;
using check::Observation;
using property::demand_within;

constexpr int kElements = 0;  // the one dimension

struct Sample {
  Problem problem;
  double max_norm = 1, grad_scale = 1;
  std::vector<double> g;

  ConstTensorView exact() const { return {g.data(), DType::f64, Shape{problem.elements}}; }
};

const std::vector<double> kMaxNorm{1, 1e-3, 1e9, INFINITY}, kGradScale{1, 1.0 / 65'536};

std::vector<std::int64_t> sizes_of_g() {
  std::vector<std::int64_t> sizes = property::sizes_up_to(5000);
  for (const std::int64_t size : {65'535, 65'536, 65'537, 70'001}) sizes.push_back(size);  // the host's pieces
  return sizes;
}

Sample draw_sample(const Rung& rung) {
  Sample sample;
  sample.problem.dtype = property::draw("dtype", rung.dtypes);
  const std::vector<std::int64_t> sizes = sizes_of_g();
  sample.problem.elements = property::draw_size("elements", sizes, sizes.back());
  sample.max_norm = property::draw("max_norm", kMaxNorm);
  sample.grad_scale = property::draw("grad_scale", kGradScale);
  const auto scale = property::draw<float>("scale", {1, 1000});
  sample.g = property::random_values(property::draw_seed(), "g", sample.problem.elements, sample.problem.dtype, scale);
  return sample;
}

struct Call {
  GuardedTensor g, norm, factor, non_finite, grad_scale;
};

Call call(const Rung& rung, const Sample& sample) {
  const Problem& p = sample.problem;
  const double scale[] = {sample.grad_scale};
  Call made{property::input("g", p.dtype, {p.elements}, {1}, sample.g),
            property::output("norm", p.statistics(), {1}, {1}), property::output("factor", p.statistics(), {1}, {1}),
            property::whole_numbers("non_finite", std::vector<std::int64_t>{-1}),
            property::input("grad_scale", p.statistics(), {1}, {1}, scale)};
  property::OnDevice there(rung.device);
  const property::Scratch scratch(rung.workspace_bytes(p), there.stream());
  rung.norm(p,
            {there.view(made.g), there.view(made.norm), there.view(made.factor),
             property::as_whole_numbers(there.view(made.non_finite)), there.view(made.grad_scale), sample.max_norm},
            scratch, there.stream());
  there.finish();
  return made;
}

void demand(const char* name, const GuardedTensor& found, const Expected& expected, Observation& observation) {
  demand_within(name, found.view(), expected.value, expected.tolerance, observation, kElements);
}

void equals_oracle(const Rung& rung, Observation& observation) {
  const Sample sample = draw_sample(rung);
  const Call made = call(rung, sample);
  const Oracle expected = oracle(sample.problem, sample.exact(), sample.max_norm, sample.grad_scale);
  demand("norm", made.norm, expected.norm, observation);
  demand("factor", made.factor, expected.factor, observation);
  if (*property::as_whole_numbers(made.non_finite.view()) != 0) property::fail("finite gradients were counted");
}

// n² elements of size k have norm n·k, which is exact whatever the order.
void integers_are_exact(const Rung& rung, Observation& observation) {
  Sample sample = draw_sample(rung);
  const std::int64_t side = property::draw_below("side", 250) + 1, size = property::draw_below("size", 60) + 1;
  sample.problem.elements = side * side;
  sample.grad_scale = 1;
  sample.g.assign(static_cast<std::size_t>(side * side), static_cast<double>(size));
  for (std::size_t i = 0; i < sample.g.size(); i += 3) sample.g[i] = -sample.g[i];
  const Call made = call(rung, sample);
  property::demand_equal("norm", to_doubles(made.norm.view()), {1},
                         std::vector<double>{static_cast<double>(side * size)}, observation, kElements);
}

void what_is_not_finite_is_counted(const Rung& rung, Observation&) {
  Sample sample = draw_sample(rung);
  std::int64_t bad = 0;
  bool nan = false;
  for (std::int64_t i = property::draw_below("first", 100); i < sample.problem.elements;
       i += 1 + property::draw_below("apart", 1000)) {
    sample.g[static_cast<std::size_t>(i)] = bad % 3 == 2 ? NAN : bad % 2 == 0 ? INFINITY : -INFINITY;
    nan = nan || bad % 3 == 2;
    if (++bad == 5) break;
  }
  const Call made = call(rung, sample);
  if (*property::as_whole_numbers(made.non_finite.view()) != bad) property::fail("non-finite elements miscounted");
  const double norm = to_doubles(made.norm.view())[0];
  if (nan ? !std::isnan(norm) : std::isinf(norm) != (bad > 0)) property::fail("the norm hides what is not finite");
}

void scaling_equals_oracle(const Rung& rung, Observation& observation) {
  const Sample sample = draw_sample(rung);
  const Problem& p = sample.problem;
  const double factor = property::rounded_to(p.statistics(), property::draw<double>("factor", {1, 0.3, 0}));
  const double factors[] = {factor};
  GuardedTensor g = property::input("g", p.dtype, {p.elements}, {1}, sample.g),
                by = property::input("factor", p.statistics(), {1}, {1}, factors);
  property::OnDevice there(rung.device);
  rung.scale(p, {there.view(g), there.view(by)}, there.stream());
  there.finish();
  demand("g", g, scale_oracle(p, sample.exact(), factor), observation);
  property::demand_unharmed(g);
}

void writes_nothing_outside(const Rung& rung, Observation&) {
  const Sample sample = draw_sample(rung);
  const Call made = call(rung, sample);
  property::demand_untouched(made.g, sample.g);
  property::demand_written(made.norm);
  property::demand_written(made.factor);
  property::demand_unharmed(made.non_finite);
}

struct Entry {
  const char* id;
  const char* statement;
  void (*body)(const Rung&, Observation&);
  bool against_oracle = false;
};

constexpr Entry kEntries[] = {
    {"global_norm.equals_oracle", "norm and factor are within their derived bounds", equals_oracle, true},
    {"global_norm.integers_are_exact", "the norm of n² integers ±k is n·k to the last bit", integers_are_exact},
    {"global_norm.what_is_not_finite_is_counted", "infinities and NaNs are counted and show in the norm",
     what_is_not_finite_is_counted},
    {"global_norm.scaling_equals_oracle", "each element is multiplied once", scaling_equals_oracle, true},
    {"global_norm.writes_nothing_outside", "only the outputs are written", writes_nothing_outside},
};

}  // namespace

std::vector<check::Law> laws(const Rung& rung) {
  return property::bound(kEntries, rung, property::search_rung<Entry, Rung>);
}

std::string never_drawn(const Rung& rung) {
  return property::all_left_out(
      rung.dtypes, {property::sizes_left_out("elements", sizes_of_g()), property::other_than("max_norm", kMaxNorm),
                    property::other_than("grad_scale", kGradScale)});
}

std::vector<LawInfo> law_list() { return property::statements(kEntries); }

}  // namespace syslab::global_norm
