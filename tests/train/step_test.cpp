// A whole training step: against the hand-out's formulas in double, in parts, with clipping.
#include "train/step.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "tests/model/model_fixture.hpp"
#include "tests/model/overflowing_loss.hpp"
#include "tests/model/refusal.hpp"
#include "train/reference_steps.hpp"
#include "train/steps_against_reference.hpp"

namespace syslab::train {
namespace {

using model::Plane;
using model::Precision;
using model::Sequences;
using model::Transformer;
using test::refuses;

Transformer tiny(Precision precision) {
  Transformer model(model::tiny_config(), {.precision = precision}, {});
  model::set_weights(model);
  return model;
}

std::vector<double> all_weights(const Transformer& model) {
  std::vector<double> all;
  for (int i = 0; i < model.parameters().layout().size(); ++i) {
    const std::vector<double> one = model.parameters().read(Plane::weight, i);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

Sequences batch_of(std::uint64_t seed) { return model::random_sequences(model::tiny_config(), 2, 32, seed); }

void run_steps(TrainingStep& step, int steps) {
  for (int i = 0; i < steps; ++i) {
    const Sequences batch = batch_of(static_cast<std::uint64_t>(100 + i));
    step.load(0, batch.ids, batch.targets);
    step.run(1e-2);
  }
}

TEST(TrainingStep, UpdatesAsTheHandoutsFormulasSay) {
  Transformer model = tiny(Precision::fp64), other = tiny(Precision::fp64);
  TrainingStep step(model, {}, 2, 32);
  std::vector<double> w = all_weights(other), m(w.size()), v(w.size());
  for (int t = 1; t <= 3; ++t) {
    const Sequences batch = batch_of(static_cast<std::uint64_t>(99 + t));
    step.load(0, batch.ids, batch.targets);
    step.run(1e-2);
    const model::Outcome outcome = model::outcome_of(other, batch);
    EXPECT_NEAR(step.result().loss, outcome.loss, 1e-13);

    const auto& layout = other.parameters().layout();
    std::size_t at = 0;
    const double alpha = 1e-2 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
    for (int i = 0; i < layout.size(); ++i) {
      std::vector<double> updated;
      for (const double g : outcome.gradients.at(layout.info(i).name)) {
        m[at] = 0.9 * m[at] + 0.1 * g;
        v[at] = 0.999 * v[at] + 0.001 * g * g;
        w[at] -= alpha * m[at] / (std::sqrt(v[at]) + 1e-8);
        w[at] -= 1e-2 * 0.01 * w[at];
        updated.push_back(w[at++]);
      }
      other.parameters().write(Plane::weight, i, 0, {updated.data(), DType::f64, layout.info(i).shape});
    }
    EXPECT_LT(model::relative_distance(all_weights(model), w), 1e-12) << "step " << t;
  }
}

TEST(TrainingStep, InFp32StaysWithTheReferenceForThreeSteps) {
  Transformer model = tiny(Precision::fp32);
  TrainingStep step(model, {}, 2, 32);
  OptimizerOptions optimizer;
  optimizer.adamw.lr = 1e-2;
  ReferenceSteps exact(model::tiny_config(), {}, optimizer, 2, 32);
  model::set_weights(exact.model());
  for (int i = 0; i < 3; ++i) {
    const Sequences batch = batch_of(static_cast<std::uint64_t>(100 + i));
    exact.take(batch.ids, batch.targets);
    step.load(0, batch.ids, batch.targets);
    step.run(1e-2);
    EXPECT_NEAR(step.result().loss, exact.loss().value, exact.loss().bound);
    ByParameter weights;
    for (int n = 0; n < model.parameters().layout().size(); ++n) {
      weights.push_back(model.parameters().read(Plane::weight, n));
    }
    EXPECT_EQ(exact.follow(weights), 0) << "step " << i;
  }
}

// What fp32 would round is no rounding of fp64.
TEST(TrainingStep, InDoublePrecisionHasTheReferencesWeightsWithinWhatThatRounds) {
  OptimizerOptions optimizer;
  optimizer.adamw.lr = 1e-2;
  for (const double off : {0.0, 1e-8}) {
    ReferenceSteps exact(model::tiny_config(), {.precision = Precision::fp64}, optimizer, 2, 32);
    model::set_weights(exact.model());
    const Sequences batch = batch_of(100);
    exact.take(batch.ids, batch.targets);
    ByParameter weights;
    for (int n = 0; n < exact.model().parameters().layout().size(); ++n) {
      weights.push_back(exact.model().parameters().read(Plane::weight, n));
      for (double& weight : weights.back()) weight *= 1 + off;
    }
    EXPECT_EQ(exact.follow(weights) > 0, off > 0);
  }
}

TEST(TrainingStep, OfPartsIsTheStepOfTheWholeBatch) {
  Transformer whole = tiny(Precision::fp64), parts = tiny(Precision::fp64);
  TrainingStep once(whole, {}, 2, 32), twice(parts, {.parts = 2}, 1, 32);
  const Sequences batch = batch_of(5);
  once.load(0, batch.ids, batch.targets);
  const std::span<const std::int64_t> ids(batch.ids), targets(batch.targets);
  twice.load(0, ids.first(32), targets.first(32));
  twice.load(1, ids.last(32), targets.last(32));
  once.run(1e-2);
  twice.run(1e-2);
  EXPECT_NEAR(once.result().loss, twice.result().loss, 1e-13);
  EXPECT_LT(model::relative_distance(all_weights(parts), all_weights(whole)), 1e-12);
}

TEST(TrainingStep, ClipsToTheGlobalNorm) {
  Transformer model = tiny(Precision::fp32);
  const Sequences batch = batch_of(5);
  double squares = 0;
  for (const auto& [name, gradient] : model::outcome_of(model, batch).gradients) {
    for (const double g : gradient) squares += g * g;
  }
  StepOptions options;
  options.optimizer.max_norm = 0.5 * std::sqrt(squares);
  options.optimizer.adamw.beta1 = 0;  // the first moment is then the clipped gradient
  TrainingStep step(model, options, 2, 32);
  step.load(0, batch.ids, batch.targets);
  step.run(1e-3);
  // Of the same gradients: summed in double, rounded once.
  const double norm = std::sqrt(squares);
  EXPECT_NEAR(step.result().gradient_norm.value(), norm, 0x1p-24 * norm);
  double clipped = 0;
  for (int i = 0; i < model.parameters().layout().size(); ++i) {
    for (const double g : model.parameters().read(Plane::first_moment, i)) clipped += g * g;
  }
  // The factor has 1e-6 in its divisor and four roundings; its product with a gradient, and the moment, two more.
  EXPECT_NEAR(std::sqrt(clipped), 0.5 * norm, (1e-6 / norm + 6 * 0x1p-24) * 0.5 * norm);
}

// AdamW hardly minds a factor in all gradients, so that weights alone would hide one that is left in: the moments keep
// it, and the next step with another scale mixes both.
TEST(TrainingStep, OfALossScaledByAPowerOfTwoLeavesTheSameBits) {
  Transformer plain = tiny(Precision::fp32), scaled = tiny(Precision::fp32);
  TrainingStep once(plain, {}, 2, 32), other(scaled, {}, 2, 32);
  for (const double scale : {65536.0, 1024.0}) {
    const Sequences batch = batch_of(5);
    once.load(0, batch.ids, batch.targets);
    other.load(0, batch.ids, batch.targets);
    once.run(1e-2);
    other.run(1e-2, scale);
    EXPECT_EQ(once.result().loss, other.result().loss);
    for (const Plane plane : {Plane::weight, Plane::first_moment, Plane::second_moment}) {
      for (int i = 0; i < plain.parameters().layout().size(); ++i) {
        EXPECT_EQ(plain.parameters().read(plane, i), scaled.parameters().read(plane, i))
            << to_string(plane) << " of " << plain.parameters().layout().info(i).name << ", loss times " << scale;
      }
    }
  }
}

TEST(TrainingStep, AnInfiniteLossWithFiniteGradientsUpdatesNothingWhereSkippingIsAsked) {
  for (const bool skips : {true, false}) {
    Transformer model = tiny(Precision::fp32);
    const Sequences batch = model::random_sequences(model::tiny_config(), 1, 8, 5);
    model::make_loss_infinite(model, model.parameters(), batch);
    StepOptions options;
    options.optimizer.skip_non_finite = skips;
    TrainingStep step(model, options, 1, 8);
    const std::vector<double> before = all_weights(model);
    step.load(0, batch.ids, batch.targets);
    step.run(1e-2);
    const StepResult result = step.result();
    EXPECT_EQ(result.loss, INFINITY);
    for (int i = 0; i < model.parameters().layout().size(); ++i) {
      for (const double g : model.parameters().read(Plane::gradient, i)) ASSERT_TRUE(std::isfinite(g));
    }
    EXPECT_EQ(result.skipped, skips);
    EXPECT_EQ(all_weights(model) == before, skips);
  }
}

TEST(TrainingStep, IsHeldToTheReferenceByItsWeightsAfterThreeSteps) {
  WorkloadOptions options{.config = model::tiny_config()};
  const StepCheck right = steps_against_reference(options, {}, 3);
  EXPECT_LE(right.error, right.tolerance) << right.message;
  // What the check is for: a step that is not taken, or taken wrongly, is further off than any precision allows.
  Transformer still = tiny(Precision::fp64), moved = tiny(Precision::fp64);
  TrainingStep step(moved, {}, 2, 32);
  run_steps(step, 3);
  EXPECT_GT(model::relative_distance(all_weights(still), all_weights(moved)),
            2 * model::tolerance_of(Precision::bf16_fused, 2).gradients);
}

// Of one token or one position exact gradients are nothing, and AdamW goes where rounding points: not further.
TEST(TrainingStep, IsHeldToTheReferenceWhereGradientsVanishToo) {
  const auto off = [](std::int64_t vocab, std::int64_t context, const model::TransformerOptions& options,
                      std::uint64_t seed) {
    WorkloadOptions workload{.config = model::tiny_config(), .model = options};
    workload.config.vocab = vocab;
    workload.config.context = context;
    return steps_against_reference(workload, {}, seed);
  };
  for (const auto& [vocab, context] : {std::pair{1, 12}, {101, 1}, {2, 2}, {1, 1}}) {
    for (const model::Variant variant : {model::Variant::fused, model::Variant::eager}) {
      for (std::uint64_t seed = 0; seed < 3; ++seed) {
        const StepCheck found = off(vocab, context, {.variant = variant}, seed);
        EXPECT_LE(found.error, found.tolerance) << found.message;
      }
    }
  }
  // Where Q and K have no choice in one step and have one in another: what rounding made of them in the first is not to
  // change what all others are held to later, and what they were moved by is not forgiven for the second.
  auto forgets = std::make_shared<adamw::Rung>();
  const auto forgetful = [forgets](model::Kernels& kernels) {
    *forgets = *kernels.adamw;
    forgets->step = [right = *kernels.adamw](const auto& problem, const adamw::Args& args, device::Stream stream) {
      auto* const weights = args.p.as<float>();
      const std::vector<float> before(weights, weights + problem.elements);
      right.step(problem, args, stream);
      for (std::int64_t i = 0; i < problem.elements; ++i) {
        if (std::abs(args.g.as<float>()[i]) < 1e-7F) weights[i] = before[static_cast<std::size_t>(i)];
      }
    };
    kernels.adamw = forgets.get();
  };
  int stood_still = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const StepCheck found = off(2, 2, {}, seed);
    EXPECT_LE(found.error, found.tolerance) << found.message << ", seed " << seed;
    const StepCheck still = off(2, 2, {.plant = forgetful}, seed);
    if (still.error > 100 * still.tolerance) ++stood_still;
  }
  EXPECT_GT(stood_still, 5);
  // A rounding in the gradient of one token's logits carries every weight as far as a gradient would.
  auto loss = std::make_shared<cross_entropy::Rung>();
  const auto rounds = [loss](model::Kernels& kernels) {
    *loss = *kernels.cross_entropy;
    loss->forward_backward = [right = *kernels.cross_entropy](const auto& problem, const auto& args,
                                                              ops::Workspace workspace, device::Stream stream) {
      right.forward_backward(problem, args, workspace, stream);
      for (std::int64_t i = 0; i < problem.rows; ++i) args.dlogits.template as<float>()[i] += 1e-5F;
    };
    kernels.cross_entropy = loss.get();
  };
  const StepCheck carried = off(1, 12, {.plant = rounds}, 0);
  EXPECT_LE(carried.error, carried.tolerance) << carried.message;
  // Ten times as far is no step of AdamW.
  auto update = std::make_shared<adamw::Rung>();
  const auto leaps = [&](model::Kernels& kernels) {
    rounds(kernels);
    *update = *kernels.adamw;
    update->step = [right = *kernels.adamw](const auto& problem, const adamw::Args& args, device::Stream stream) {
      alignas(16) adamw::Scalars ten = *args.scalars;
      ten.in_f32.step *= 10;
      adamw::Args more = args;
      more.scalars = &ten;
      right.step(problem, more, stream);
    };
    kernels.adamw = update.get();
  };
  const StepCheck leapt = off(1, 12, {.plant = leaps}, 0);
  EXPECT_GT(leapt.error, 10 * leapt.tolerance);
}

// Gradients of the size of their own rounding, in the first step or in one after a gradient of nothing: AdamW makes
// whole steps of them.
TEST(TrainingStep, IsHeldToTheReferenceWhereAGradientIsNoMoreThanItsRounding) {
  struct Case {
    std::int64_t vocab, context;
    std::uint64_t seed;
  };
  for (const Case& one : {Case{2, 1, 1700},
                          {2, 2, 160},
                          {2, 2, 380},
                          {2, 2, 449},
                          {2, 2, 1269},
                          {2, 3, 1449},
                          {3, 1, 97},
                          {3, 4, 400},
                          {4, 2, 1178},
                          {8, 2, 545}}) {
    WorkloadOptions workload{.config = model::tiny_config()};
    workload.config.vocab = one.vocab;
    workload.config.context = one.context;
    const StepCheck found = steps_against_reference(workload, {}, one.seed);
    EXPECT_LE(found.error, found.tolerance / 100) << found.message << ", seed " << one.seed;
  }
}

// What is forgiven there is forgiven nowhere else.
TEST(TrainingStep, IsFoundWrongByTheReferenceForOneWeightAndForLittleOfAll) {
  const auto off = [](const auto& change) {
    auto rung = std::make_shared<adamw::Rung>();
    const auto plant = [rung, &change](model::Kernels& kernels) {
      *rung = *kernels.adamw;
      rung->step = [right = *kernels.adamw, &change](const auto& problem, const adamw::Args& args,
                                                     device::Stream stream) {
        std::vector<float> g(args.g.as<float>(), args.g.as<float>() + problem.elements);
        alignas(16) adamw::Scalars scalars = *args.scalars;
        change(g, scalars.in_f32);
        adamw::Args changed = args;
        changed.g = {g.data(), DType::f32, {problem.elements}};
        changed.scalars = &scalars;
        right.step(problem, changed, stream);
      };
      kernels.adamw = rung.get();
    };
    WorkloadOptions workload{.config = model::tiny_config(), .model = {.plant = plant}};
    workload.config.context = 12;
    const StepCheck found = steps_against_reference(workload, {}, 3);
    return found.error / found.tolerance;
  };
  using Numbers = adamw::StepNumbers<float>;
  EXPECT_LT(off([](std::vector<float>&, Numbers&) {}), 0.01);
  // The sign of one weight's gradient.
  EXPECT_GT(off([](std::vector<float>& g, Numbers&) {
              const auto largest = std::max_element(g.begin(), g.begin() + 32,
                                                    [](float a, float b) { return std::abs(a) < std::abs(b); });
              *largest = -*largest;
            }),
            3);
  EXPECT_GT(off([](std::vector<float>&, Numbers& n) { n.decay_before = n.decay_after = 0; }), 2.9);
  EXPECT_GT(off([](std::vector<float>&, Numbers& n) { n.step *= 1.003F; }), 1.4);
  EXPECT_GT(off([](std::vector<float>&, Numbers& n) { n.beta2 = 0.99F, n.rest2 = 0.01F; }), 300);
}

TEST(TrainingStep, TellsNobodyOfFinalGradientsFromAGraph) {
  Transformer model(model::tiny_config(), {.variant = model::Variant::graph}, {});
  const StepOptions options{.grad_final = [](int, device::Stream) {}};
  EXPECT_TRUE(refuses([&] { TrainingStep(model, options, 2, 32); }, "recorded step", "Variant::fused"));
}

TEST(TrainingStep, LearnsToRepeatOneBatch) {
  Transformer model = tiny(Precision::fp32);
  TrainingStep step(model, {}, 2, 32);
  const Sequences batch = batch_of(5);
  double first = 0;
  for (int i = 0; i < 60; ++i) {
    step.load(0, batch.ids, batch.targets);
    step.run(1e-2);
    if (i == 0) first = step.result().loss;
  }
  EXPECT_GT(first, 4.0);  // ln 101 = 4.6, and more where weights are random
  EXPECT_LT(step.result().loss, 0.1 * first);
}

TEST(TrainingStep, RefusesTokensOutsideTheVocabularyAndBatchesOfAnotherSize) {
  Transformer model = tiny(Precision::fp32);
  TrainingStep step(model, {}, 2, 32);
  Sequences batch = batch_of(5);
  batch.ids[3] = 101;
  EXPECT_TRUE(refuses([&] { step.load(0, batch.ids, batch.targets); }, "token 3 is 101", "0 to 100"));
  batch.ids.pop_back();
  EXPECT_TRUE(refuses([&] { step.load(0, batch.ids, batch.targets); }, "63 token", "64"));
  EXPECT_TRUE(refuses([&] { TrainingStep(model, {}, 2, 41); }, "context is 40"));
}

}  // namespace
}  // namespace syslab::train
