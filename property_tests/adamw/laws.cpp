#include "property_tests/adamw/laws.hpp"

#include <cmath>
#include <cstring>

#include "ops/adamw/oracle.hpp"
#include "property_tests/operators.hpp"

namespace syslab::adamw {
namespace {

using check::GuardedTensor;
using check::Observation;
using property::demand_within;

constexpr int kElements = 0;  // the one dimension

struct Sample {
  Problem problem;
  Options options;
  std::uint64_t seed = 0;
  double grad_scale = 1;
  float clip = 1;

  Shape shape() const { return {problem.elements}; }
  std::vector<double> values(const char* name, float scale) const {
    return property::random_values(seed, name, problem.elements, problem.dtype, scale);
  }
};

constexpr std::int64_t kMostElements = 9000;
const std::vector<double> kLr{1e-3, 0.1, 0}, kWeightDecay{0.01, 0, 0.5}, kBeta1{0.9, 0}, kBeta2{0.999, 0.95},
    kEps{1e-8, 1e-2}, kGradScale{1, 1.0 / 1024}, kClip{1, 0.3F};
const std::vector<std::int64_t> kFirstSteps{1, 2, 1000};
constexpr std::int64_t kSteps = 3;  // from there on

Sample draw_sample(const Rung& rung) {
  Sample sample;
  Problem& problem = sample.problem;
  problem.dtype = property::draw("dtype", rung.dtypes);
  problem.elements = property::draw_size("elements", property::sizes_up_to(kMostElements), kMostElements);
  const bool copies = !rung.supports({.copy_dtype = DType::bf16});
  const auto copy = copies ? property::draw_below("copy", 3) : 0;
  if (copy > 0) problem.copy_dtype = copy == 1 ? DType::bf16 : DType::f16;
  Options& options = sample.options;
  options.decay_order = property::draw_below("decay before", 2) == 1 ? DecayOrder::before : DecayOrder::after;
  options.eps_mode = property::draw_below("eps corrected", 2) == 1 ? EpsMode::corrected : EpsMode::uncorrected;
  options.lr = property::draw("lr", kLr);
  options.weight_decay = property::draw("weight_decay", kWeightDecay);
  options.beta1 = property::draw("beta1", kBeta1);
  options.beta2 = property::draw("beta2", kBeta2);
  options.eps = property::draw("eps", kEps);
  sample.grad_scale = property::draw("grad_scale", kGradScale);
  sample.clip = static_cast<float>(property::draw("clip", kClip));
  sample.seed = property::draw_seed();
  return sample;
}

struct Arena {
  GuardedTensor p, m, v, g, copy, scalars, clip, non_finite;
};

Arena arena_of(const Sample& sample) {
  const Problem& problem = sample.problem;
  std::vector<double> squares = sample.values("v", 0.1F);
  for (double& square : squares) square = std::abs(square);
  const auto input = [&](const char* name, const std::vector<double>& values) {
    return property::input(name, problem.dtype, sample.shape(), {1}, values);
  };
  const double clip[] = {sample.clip};
  return {input("p", sample.values("p", 1)),
          input("m", sample.values("m", 0.1F)),
          input("v", squares),
          input("g", sample.values("g", 3)),
          property::output("copy", problem.copy_dtype.value_or(DType::bf16), sample.shape(), {1}),
          property::output("scalars", DType::f64, {static_cast<std::int64_t>(sizeof(Scalars) / sizeof(double))}, {1}),
          property::input("clip", DType::f32, {1}, {1}, clip),
          property::whole_numbers("non_finite", std::vector<std::int64_t>{0})};
}

void step(const Rung& rung, const Sample& sample, const Scalars& scalars, Arena& arena) {
  std::memcpy(arena.scalars.view().data, &scalars, sizeof(Scalars));
  property::OnDevice there(rung.device);
  const TensorView copy = there.view(arena.copy);
  rung.step(
      sample.problem,
      {there.view(arena.p), there.view(arena.m), there.view(arena.v), there.view(arena.g),
       sample.problem.copy_dtype ? copy : TensorView{}, static_cast<const Scalars*>(there.view(arena.scalars).data),
       static_cast<const float*>(there.view(arena.clip).data),
       property::as_whole_numbers(there.view(arena.non_finite))},
      there.stream());
  there.finish();
}

void demand(const char* name, const GuardedTensor& found, const Expected& expected, Observation& observation) {
  demand_within(name, found.view(), expected.value, expected.tolerance, observation, kElements);
}

// Each of a few steps, from the state that the step before left.
void equals_oracle(const Rung& rung, Observation& observation) {
  const Sample sample = draw_sample(rung);
  const std::int64_t first = property::draw("first step", kFirstSteps);
  Arena arena = arena_of(sample);
  for (std::int64_t t = first; t < first + kSteps; ++t) {
    property::assign(arena.g.view(), property::random_values(sample.seed, std::to_string(t), sample.problem.elements,
                                                             sample.problem.dtype, 3));
    const Scalars scalars = scalars_of(sample.options, t, sample.grad_scale);
    const Oracle expected =
        oracle(sample.problem, arena.p.view(), arena.m.view(), arena.v.view(), arena.g.view(), scalars, sample.clip);
    step(rung, sample, scalars, arena);
    demand("m", arena.m, expected.m, observation);
    demand("v", arena.v, expected.v, observation);
    demand("p", arena.p, expected.p, observation);
  }
}

void the_copy_is_p_rounded(const Rung& rung, Observation& observation) {
  Sample sample = draw_sample(rung);
  if (!sample.problem.copy_dtype) sample.problem.copy_dtype = DType::bf16;
  Arena arena = arena_of(sample);
  step(rung, sample, scalars_of(sample.options, 1), arena);
  std::vector<double> rounded = to_doubles(arena.p.view());
  for (double& value : rounded) {
    value = property::rounded_to(*sample.problem.copy_dtype, static_cast<double>(static_cast<float>(value)));
  }
  property::demand_equal("copy", to_doubles(arena.copy.view()), sample.shape(), rounded, observation, kElements);
}

void a_skipped_step_touches_nothing(const Rung& rung, Observation&) {
  const Sample sample = draw_sample(rung);
  Arena arena = arena_of(sample);
  const bool by_flag = property::draw_below("by the count of non-finite gradients", 2) == 0;
  *property::as_whole_numbers(arena.non_finite.view()) = by_flag ? 0 : 3;
  const std::vector<double> p = to_doubles(arena.p.view()), m = to_doubles(arena.m.view()),
                            v = to_doubles(arena.v.view());
  step(rung, sample, scalars_of(sample.options, 1, sample.grad_scale, by_flag), arena);
  property::demand_untouched(arena.p, p);
  property::demand_untouched(arena.m, m);
  property::demand_untouched(arena.v, v);
  property::demand_unharmed(arena.copy);
  if (arena.copy.unwritten() != sample.problem.elements) property::fail("a skipped step wrote its copy");
}

void writes_nothing_outside(const Rung& rung, Observation&) {
  const Sample sample = draw_sample(rung);
  Arena arena = arena_of(sample);
  step(rung, sample, scalars_of(sample.options, 1, sample.grad_scale), arena);
  property::demand_untouched(arena.g, sample.values("g", 3));
  for (const GuardedTensor* one : {&arena.p, &arena.m, &arena.v, &arena.copy, &arena.scalars, &arena.clip}) {
    property::demand_unharmed(*one);
  }
  if (sample.problem.copy_dtype) property::demand_written(arena.copy);
}

struct Entry {
  const char* id;
  const char* statement;
  void (*body)(const Rung&, Observation&);
  bool against_oracle = false;
};

constexpr Entry kEntries[] = {
    {"adamw.equals_oracle", "p, m and v of a few steps are within their derived bounds, whatever the options",
     equals_oracle, true},
    {"adamw.the_copy_is_p_rounded", "the copy in half precision is the new p, rounded once", the_copy_is_p_rounded},
    {"adamw.a_skipped_step_touches_nothing", "a step that is skipped changes no bit", a_skipped_step_touches_nothing},
    {"adamw.writes_nothing_outside", "only p, m, v and the copy are written", writes_nothing_outside},
};

}  // namespace

std::vector<check::Law> laws(const Rung& rung) {
  return property::bound(kEntries, rung, property::search_rung<Entry, Rung>);
}

std::string never_drawn(const Rung& rung) {
  return property::all_left_out(
      rung.dtypes, {property::above("elements", kMostElements), property::other_than("lr", kLr),
                    property::other_than("weight_decay", kWeightDecay), property::other_than("beta1", kBeta1),
                    property::other_than("beta2", kBeta2), property::other_than("eps", kEps),
                    property::other_than("grad_scale", kGradScale), property::other_than("clip", kClip),
                    property::above("steps", kFirstSteps.back() + kSteps - 1), "inputs with inf or NaN"});
}

std::vector<LawInfo> law_list() { return property::statements(kEntries); }

}  // namespace syslab::adamw
