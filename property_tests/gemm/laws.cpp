#include "property_tests/gemm/laws.hpp"

#include <algorithm>
#include <cmath>

#include "check/search.hpp"
#include "ops/gemm/oracle.hpp"
#include "property_tests/draw.hpp"
#include "property_tests/law_table.hpp"
#include "property_tests/left_out.hpp"
#include "property_tests/on_device.hpp"
#include "property_tests/tensors.hpp"
#include "property_tests/verdict.hpp"

namespace syslab::gemm {
namespace {

using check::Contract;
using check::GuardedTensor;
using check::Observation;
using property::demand_within;
using property::Layout;

constexpr int kRows = 0;                         // of C: the dimension that kernels cut into tiles
constexpr std::int64_t kMostProducts = 200'000;  // m·n·k
constexpr std::int64_t kMostOfEach = 300, kMostOutputs = kMostProducts / 16;

struct Subject {
  const Rung& rung;
  Contract contract;

  bool exact() const { return contract == Contract::full && rung.deterministic; }
  double allowed(double expected, double derived) const {
    if (contract == Contract::full) return derived;
    return std::max(derived, 1e-2 * (1 + std::abs(expected)));  // rtol and atol of the hand-out's tests
  }
};

struct Sample {
  Problem problem;
  Layout layout = Layout::contiguous;
  std::uint64_t seed = 0;
  std::vector<double> a, b;
};

std::vector<DType> dtypes_of(const Rung& rung) {
  std::vector<DType> dtypes;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    if (!rung.supports(Problem{64, 64, 64, dtype})) dtypes.push_back(dtype);
  }
  return dtypes;
}

Sample draw_sample(const Subject& subject) {
  const bool handout = subject.contract == Contract::handout;
  const std::vector<std::int64_t> powers{16, 32, 64, 128};
  const std::vector<std::int64_t> sizes = handout ? powers : property::sizes_up_to(kMostOfEach);
  Sample sample;
  Problem& p = sample.problem;
  p.dtype = property::draw("dtype", dtypes_of(subject.rung));
  p.m = property::draw_size("m", sizes, sizes.back());
  p.n = property::draw_size("n", sizes, std::max<std::int64_t>(kMostOutputs / p.m, sizes.front()));
  p.k = property::draw_size("k", sizes, std::max(kMostProducts / (p.m * p.n), sizes.front()));
  sample.layout = property::draw<Layout>(
      "layout", handout ? std::vector{Layout::contiguous} : std::vector{Layout::contiguous, Layout::padded});
  sample.seed = property::draw_seed();
  RC_PRE(!subject.rung.supports(p).has_value());
  sample.a = property::random_values(sample.seed, "a", p.m * p.k, p.dtype);
  sample.b = property::random_values(sample.seed, "b", p.k * p.n, p.dtype);
  return sample;
}

struct Call {
  GuardedTensor a, b, c;
};

Call call(const Rung& rung, const Sample& sample) {
  const Problem& p = sample.problem;
  const auto matrix = [&](const char* name, const Shape& shape, const std::vector<double>& values) {
    return property::input(name, p.dtype, shape, strides_of(shape, sample.layout), values);
  };
  const Shape shape{p.m, p.n};
  Call made{matrix("a", {p.m, p.k}, sample.a), matrix("b", {p.k, p.n}, sample.b),
            property::output("c", p.dtype, shape, strides_of(shape, sample.layout))};
  property::OnDevice there(rung.device);
  rung.run(p, {there.view(made.a), there.view(made.b), there.view(made.c)}, {}, there.stream());
  there.finish();
  return made;
}

void equals_oracle(const Subject& subject, Observation& observation) {
  const Sample sample = draw_sample(subject);
  const Problem& p = sample.problem;
  const Call made = call(subject.rung, sample);
  std::vector<double> expected, bound;
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      long double sum = 0, magnitude = 0;
      for (std::int64_t k = 0; k < p.k; ++k) {
        const long double term = static_cast<long double>(sample.a[static_cast<std::size_t>(i * p.k + k)]) *
                                 sample.b[static_cast<std::size_t>(k * p.n + j)];
        sum += term;
        magnitude += std::abs(term);
      }
      const auto value = static_cast<double>(sum);
      expected.push_back(value);
      bound.push_back(
          subject.allowed(value, element_bound(p, subject.rung.operand_unit, value, static_cast<double>(magnitude))));
    }
  }
  demand_within("c", made.c.view(), expected, bound, observation, kRows);
}

// One product is 1·a, the others are 0: nothing is rounded, in any order.
void identity(const Subject& subject, Observation& observation) {
  Sample sample = draw_sample(subject);
  Problem& p = sample.problem;
  p.k = p.n = std::min(p.k, p.n);
  sample.a.resize(static_cast<std::size_t>(p.m * p.k));
  sample.b.assign(static_cast<std::size_t>(p.k * p.n), 0.0);
  for (std::int64_t i = 0; i < p.n; ++i) sample.b[static_cast<std::size_t>(i * p.n + i)] = 1;
  RC_PRE(!subject.rung.supports(p).has_value());
  const Call made = call(subject.rung, sample);
  const std::vector<double> found = to_doubles(made.c.view());
  const double unit = subject.rung.operand_unit;
  if (!(unit > 0)) return property::demand_equal("of A·I: c", found, {p.m, p.n}, sample.a, observation, kRows);
  // A rung that cuts its operands (TF32) cuts A once, and 1 not at all.
  std::vector<double> bound;
  for (const double value : sample.a) bound.push_back(unit * std::abs(value));
  demand_within("of A·I: c", found, {p.m, p.n}, sample.a, bound, observation, kRows);
}

void rows_stand_alone(const Subject& subject, Observation& observation) {
  const Sample sample = draw_sample(subject);
  const Problem& p = sample.problem;
  const std::int64_t row = property::draw_below("row", 256) % p.m;
  Sample changed = sample;
  for (std::int64_t k = 0; k < p.k; ++k) changed.a[static_cast<std::size_t>(row * p.k + k)] = 3;
  const std::vector<double> before = to_doubles(call(subject.rung, sample).c.view());
  std::vector<double> after = to_doubles(call(subject.rung, changed).c.view());
  // The changed row is equals_oracle's business.
  std::copy_n(before.begin() + row * p.n, p.n, after.begin() + row * p.n);
  std::vector<double> allowed{0.0};
  if (!subject.exact()) {
    allowed.clear();
    for (const double value : before) allowed.push_back(subject.allowed(value, 1e-2 * (1 + std::abs(value))));
  }
  demand_within("with one row of A changed: c", after, {p.m, p.n}, before, allowed, observation, kRows);
}

void writes_nothing_outside(const Subject& subject, Observation& observation) {
  const Sample sample = draw_sample(subject);
  const Call made = call(subject.rung, sample);
  for (const GuardedTensor* tensor : {&made.a, &made.b}) {
    property::demand_unharmed(*tensor);
    property::demand_equal("after the call: input " + tensor->spec().name, to_doubles(tensor->view()),
                           tensor->spec().shape, tensor == &made.a ? sample.a : sample.b, observation, kRows);
  }
  property::demand_written(made.c);
}

struct Entry {
  const char* id;
  const char* statement;
  void (*body)(const Subject&, Observation&);
};

constexpr Entry kEntries[] = {
    {"gemm.equals_oracle", "C is within its derived bound of the exact product", equals_oracle},
    {"gemm.identity", "A·I = A to the bit, but for what the kernel cuts from its operands", identity},
    {"gemm.rows_stand_alone", "changing a row of A changes no other row of C", rows_stand_alone},
    {"gemm.writes_nothing_outside", "only C is written, and all of it, between the rows' ends", writes_nothing_outside},
};

// Why the rung cannot be asked at all, or nothing.
std::optional<std::string> excuse(const Rung& rung) {
  if (const auto reason = property::OnDevice::refusal(rung.device)) return rung.name + " " + *reason;
  std::string reason;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    const auto refused = rung.supports(Problem{64, 64, 64, dtype});
    if (!refused) return std::nullopt;
    reason = *refused;
  }
  return reason;
}

check::LawResult search(const Entry& entry, const Rung& rung, const check::LawRequest& request) {
  if (const auto reason = excuse(rung)) return property::does_not_apply(*reason);
  const Subject subject{rung, request.contract};
  return property::with_left_out(
      check::search(entry.id, request, [&](Observation& observation) { entry.body(subject, observation); }), rung,
      request);
}

}  // namespace

std::vector<check::Law> laws(const Rung& rung) { return property::bound(kEntries, rung, search); }

std::string never_drawn(const Rung& rung) {
  return property::all_left_out(
      dtypes_of(rung),
      {property::above("m", kMostOfEach), property::above("n", kMostOfEach), property::above("k", kMostOfEach),
       property::above("m·n", kMostOutputs), property::above("m·n·k", kMostProducts), "inputs with inf or NaN"});
}

std::vector<LawInfo> law_list() { return property::statements(kEntries); }

}  // namespace syslab::gemm
