#include "property_tests/cross_entropy/laws.hpp"

#include <cmath>

#include "ops/cross_entropy/eager.hpp"
#include "ops/cross_entropy/oracle.hpp"
#include "property_tests/operators.hpp"

namespace syslab::cross_entropy {
namespace {

using check::GuardedTensor;
using check::Observation;
using property::demand_within;
using property::Layout;

constexpr int kRows = 0;                        // the dimension that is cut
constexpr std::int64_t kMostElements = 20'000;  // of the logits
constexpr std::int64_t kMostClasses = 3000, kMostRows = 300;

struct Sample {
  Problem problem;
  Layout layout = Layout::contiguous;
  double scale = 1;
  std::vector<double> logits;
  std::vector<std::int64_t> targets;

  Shape matrix() const { return {problem.rows, problem.classes}; }
  Strides strides() const { return strides_of(matrix(), layout); }
  ConstTensorView exact_logits() const { return {logits.data(), DType::f64, matrix()}; }
  // With what a rung that goes operation by operation may add by rounding between them.
  Oracle expected(const Rung& rung) const {
    Oracle exact = oracle(problem, exact_logits(), targets, scale);
    if (rung.op_by_op) eager_allow(problem, exact_logits(), targets, scale, exact);
    return exact;
  }
};

const std::vector<double> kScale{1, 0.25, 1024};

Sample draw_sample(const Rung& rung) {
  Sample sample;
  Problem& problem = sample.problem;
  problem.dtype = property::draw("dtype", rung.dtypes);
  const std::vector<std::int64_t> sizes = property::sizes_up_to(kMostClasses);
  problem.classes = property::draw_size("classes", sizes, kMostClasses);
  problem.rows = property::draw_size("rows", sizes, std::min(kMostElements / problem.classes, kMostRows));
  sample.layout = property::draw<Layout>("layout", {Layout::contiguous, Layout::padded, Layout::spaced});
  const double spread = property::draw<double>("spread", {1, 8, 60});
  sample.scale = property::draw("scale", kScale);
  const std::uint64_t seed = property::draw_seed();
  sample.logits = property::random_values(seed, "logits", problem.rows * problem.classes, problem.dtype,
                                          static_cast<float>(spread));
  const RandomStream stream = RandomStream::derive(seed, "cross_entropy", "law", "targets");
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    sample.targets.push_back(stream.bits(static_cast<std::uint64_t>(i)) % problem.classes);
  }
  return sample;
}

struct Call {
  GuardedTensor logits, targets, scale, row_loss, lse, loss, dlogits;
};

enum class How { forward, forward_then_backward, both };

Call call(const Rung& rung, const Sample& sample, How how) {
  const Problem& p = sample.problem;
  const DType f = p.statistics();
  const double scale[] = {sample.scale};
  Call made{property::input("logits", p.dtype, sample.matrix(), sample.strides(), sample.logits),
            property::whole_numbers("targets", sample.targets),
            property::input("scale", f, {1}, {1}, scale),
            property::output("row_loss", f, {p.rows}, {1}),
            property::output("lse", f, {p.rows}, {1}),
            property::output("loss", f, {1}, {1}),
            property::output("dlogits", p.dtype, sample.matrix(), sample.strides())};
  property::OnDevice there(rung.device);
  const auto logits = there.view(made.logits), scale_there = there.view(made.scale),
             row_loss = there.view(made.row_loss), lse = there.view(made.lse), loss = there.view(made.loss),
             dlogits = there.view(made.dlogits);
  const std::int64_t* targets = property::as_whole_numbers(there.view(made.targets));
  const auto scratch = [&](Pass pass) { return property::Scratch(rung.workspace_bytes(p, pass), there.stream()); };
  if (how == How::both) {
    rung.forward_backward(p, {logits, targets, scale_there, row_loss, lse, loss, dlogits}, scratch(Pass::both),
                          there.stream());
  } else {
    rung.forward(p, {logits, targets, row_loss, lse, loss}, scratch(Pass::forward), there.stream());
  }
  if (how == How::forward_then_backward) {
    rung.backward(p, {logits, targets, lse, scale_there, dlogits}, scratch(Pass::backward), there.stream());
  }
  there.finish();
  return made;
}

void demand(const char* name, const GuardedTensor& found, const Expected& expected, Observation& observation) {
  demand_within(name, found.view(), expected.value, expected.tolerance, observation, kRows);
}

void demand_losses(const Call& made, const Oracle& expected, Observation& observation) {
  demand("row_loss", made.row_loss, expected.row_loss, observation);
  demand("lse", made.lse, expected.lse, observation);
  demand("loss", made.loss, expected.loss, observation);
}

void equals_oracle(const Rung& rung, Observation& observation) {
  const Sample sample = draw_sample(rung);
  demand_losses(call(rung, sample, How::forward), sample.expected(rung), observation);
}

void gradient_equals_oracle(const Rung& rung, Observation& observation) {
  const Sample sample = draw_sample(rung);
  const Call made = call(rung, sample, How::forward_then_backward);
  // Such a rung makes its sums anew and reads no lse.
  const Expected expected = rung.op_by_op ? sample.expected(rung).dlogits
                                          : gradient_oracle(sample.problem, sample.exact_logits(), sample.targets,
                                                            made.lse.view(), sample.scale);
  demand("dlogits", made.dlogits, expected, observation);
}

void both_equal_oracle(const Rung& rung, Observation& observation) {
  const Sample sample = draw_sample(rung);
  const Call made = call(rung, sample, How::both);
  const Oracle expected = sample.expected(rung);
  demand_losses(made, expected, observation);
  demand("dlogits", made.dlogits, expected.dlogits, observation);
}

// Σ p − 1 = 0: what the elements' bounds leave of it.
void gradient_rows_sum_to_zero(const Rung& rung, Observation& observation) {
  const Sample sample = draw_sample(rung);
  const Call made = call(rung, sample, How::both);
  const std::vector<double> gradient = to_doubles(made.dlogits.view()), bound = sample.expected(rung).dlogits.tolerance;
  std::vector<double> sums(static_cast<std::size_t>(sample.problem.rows)), bounds(sums.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const std::size_t row = i / static_cast<std::size_t>(sample.problem.classes);
    sums[row] += gradient[i];
    bounds[row] += bound[i] + 0x1p-50 * std::abs(gradient[i]);
  }
  demand_within("the sum of each row of dlogits", sums, {sample.problem.rows}, std::vector<double>(sums.size(), 0.0),
                bounds, observation, kRows);
}

// Halves between −8 and 8 and a shift by whole numbers up to 64: exact in every dtype.
void shift_invariance(const Rung& rung, Observation& observation) {
  Sample sample = draw_sample(rung);
  for (double& z : sample.logits) z = std::round(std::fmax(std::fmin(z, 8.0), -8.0) * 2) / 2;
  Sample shifted = sample;
  const double shift = static_cast<double>(property::draw_below("shift", 57)) - 28;
  for (double& z : shifted.logits) z += shift;
  const Oracle expected = sample.expected(rung), of_shifted = shifted.expected(rung);
  const Call before = call(rung, sample, How::both), after = call(rung, shifted, How::both);
  const auto together = [](const Expected& a, const Expected& b) {
    std::vector<double> sum = a.tolerance;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += b.tolerance[i];
    return sum;
  };
  demand_within("of shifted logits: row_loss", after.row_loss.view(), to_doubles(before.row_loss.view()),
                together(expected.row_loss, of_shifted.row_loss), observation, kRows);
  demand_within("of shifted logits: dlogits", after.dlogits.view(), to_doubles(before.dlogits.view()),
                together(expected.dlogits, of_shifted.dlogits), observation, kRows);
}

void large_logits(const Rung& rung, Observation& observation) {
  Sample sample = draw_sample(rung);
  for (double& z : sample.logits) z = property::rounded_to(sample.problem.dtype, z > 0 ? 1e4 : z < -1 ? -1e4 : z);
  const Call made = call(rung, sample, How::both);
  const Oracle expected = sample.expected(rung);
  demand_losses(made, expected, observation);
  demand("dlogits", made.dlogits, expected.dlogits, observation);
}

void a_target_out_of_range_shows(const Rung& rung, Observation&) {
  Sample sample = draw_sample(rung);
  const auto row = static_cast<std::size_t>(property::draw_below("row", sample.problem.rows));
  sample.targets[row] = property::draw<std::int64_t>("target", {-1, sample.problem.classes, INT64_MIN, INT64_MAX});
  const How how = property::draw<How>("how", {How::both, How::forward_then_backward});
  const Call made = call(rung, sample, how);
  const std::vector<double> losses = to_doubles(made.row_loss.view()), gradient = to_doubles(made.dlogits.view());
  if (!std::isnan(to_doubles(made.loss.view())[0]))
    property::fail("a target out of range left a loss that is a number");
  for (std::size_t i = 0; i < losses.size(); ++i) {
    if (std::isnan(losses[i]) != (i == row)) property::fail("row_loss is NaN in the wrong rows");
  }
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    if (std::isnan(gradient[i]) != (i / static_cast<std::size_t>(sample.problem.classes) == row)) {
      property::fail("dlogits is NaN in the wrong rows");
    }
  }
}

void writes_nothing_outside(const Rung& rung, Observation&) {
  const Sample sample = draw_sample(rung);
  for (const How how : {How::both, How::forward_then_backward}) {
    const Call made = call(rung, sample, how);
    property::demand_untouched(made.logits, sample.logits);
    property::demand_unharmed(made.targets);
    for (const GuardedTensor* one : {&made.row_loss, &made.lse, &made.loss, &made.dlogits}) {
      property::demand_written(*one);
    }
  }
}

struct Entry {
  const char* id;
  const char* statement;
  void (*body)(const Rung&, Observation&);
  bool against_oracle = false;
};

constexpr Entry kEntries[] = {
    {"cross_entropy.equals_oracle", "losses and lse are within their derived bounds", equals_oracle, true},
    {"cross_entropy.gradient_equals_oracle", "the gradient of a given lse is within its derived bound",
     gradient_equals_oracle, true},
    {"cross_entropy.both_equal_oracle", "loss and gradient made at once are within their derived bounds",
     both_equal_oracle, true},
    {"cross_entropy.gradient_rows_sum_to_zero", "each row of the gradient sums to 0", gradient_rows_sum_to_zero},
    {"cross_entropy.shift_invariance", "a constant added to all logits changes neither loss nor gradient",
     shift_invariance},
    {"cross_entropy.large_logits", "logits of ±10,000 give the right loss and gradient", large_logits, true},
    {"cross_entropy.a_target_out_of_range_shows", "a target out of range is NaN in its row and in the mean alone",
     a_target_out_of_range_shows},
    {"cross_entropy.writes_nothing_outside", "only the outputs are written, and all of them", writes_nothing_outside},
};

}  // namespace

std::vector<check::Law> laws(const Rung& rung) {
  return property::bound(kEntries, rung, property::search_rung<Entry, Rung>);
}

std::string never_drawn(const Rung& rung) {
  return property::all_left_out(
      rung.dtypes,
      {property::above("rows", kMostRows), property::above("classes", kMostClasses),
       property::above("logits", kMostElements), property::other_than("scale", kScale), "logits with inf or NaN"});
}

std::vector<LawInfo> law_list() { return property::statements(kEntries); }

}  // namespace syslab::cross_entropy
