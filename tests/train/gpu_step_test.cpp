// A training step on a GPU: recorded as a graph, with scaled losses, in parts.
#include "device/memory_log.hpp"
#include "tests/device/gpu_fixture.hpp"
#include "tests/model/model_fixture.hpp"
#include "train/loss_scaler.hpp"
#include "train/step.hpp"
#include "train/steps_against_reference.hpp"
#include "train/workload.hpp"

namespace syslab::train {
namespace {

using model::Plane;
using model::Precision;
using model::Transformer;
using model::Variant;

class GpuTrainingStep : public device::GpuTest {
 protected:
  Transformer tiny(Precision precision, Variant variant) const {
    Transformer model(model::tiny_config(), {.precision = precision, .variant = variant}, stream);
    model::set_weights(model);
    model.refresh_weights_copy();
    return model;
  }

  static std::vector<double> weights_of(const Transformer& model) {
    std::vector<double> all;
    for (int i = 0; i < model.parameters().layout().size(); ++i) {
      const std::vector<double> one = model.parameters().read(Plane::weight, i);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

  static std::vector<double> losses_of(TrainingStep& step, int steps) {
    std::vector<double> losses;
    for (int i = 0; i < steps; ++i) {
      const model::Sequences batch =
          model::random_sequences(model::tiny_config(), 2, 32, static_cast<std::uint64_t>(50 + i));
      step.load(0, batch.ids, batch.targets);
      step.run(1e-2 / (1 + i));
      losses.push_back(step.result().loss);
    }
    return losses;
  }
};

TEST_F(GpuTrainingStep, AsAGraphHasTheBitsOfTheStepsOneByOne) {
  for (const Precision precision : {Precision::fp32, Precision::bf16_amp, Precision::bf16_fused}) {
    Transformer direct = tiny(precision, Variant::fused), recorded = tiny(precision, Variant::graph);
    StepOptions options;
    options.optimizer.max_norm = 1.0;
    TrainingStep one(direct, options, 2, 32), other(recorded, options, 2, 32);
    EXPECT_EQ(losses_of(one, 6), losses_of(other, 6)) << to_string(precision);
    EXPECT_EQ(other.why_no_graph(), "");
    EXPECT_GT(other.graph_nodes(), 20U);
    EXPECT_EQ(weights_of(direct), weights_of(recorded)) << to_string(precision);
  }
}

// Up to the first tie that is rounded otherwise, the bits are the same: after one step from weights that are exact in
// bf16, weights of halves are those of whole ones.
TEST_F(GpuTrainingStep, WeightsInHalvesTakeTheStepOfWholeOnes) {
  for (const Variant variant : {Variant::fused, Variant::graph}) {
    std::vector<std::vector<double>> weights, losses;
    std::vector<std::size_t> bytes;
    for (const bool whole : {true, false}) {
      Transformer model(model::tiny_config(),
                        {.precision = Precision::bf16_fused, .variant = variant, .whole_weights = whole}, stream);
      model::set_weights(model);
      model.refresh_weights_copy();
      TrainingStep step(model, {}, 2, 32);
      losses.push_back(losses_of(step, 1));
      weights.push_back(weights_of(model));
      for (const double loss : losses_of(step, 3)) losses.back().push_back(loss);  // recorded and replayed
      bytes.push_back(model.parameters().bytes());
      EXPECT_EQ(step.why_no_graph(), "");
      // The gains that norms read are the weights as they are now.
      const model::ParameterArena& arena = model.parameters();
      for (const int norm : {arena.layout().layer(0).ln2, arena.layout().layer(1).ln1, arena.layout().ln_final()}) {
        EXPECT_EQ(model::values_of(arena.weights(norm), stream), arena.read(Plane::weight, norm)) << whole;
      }
    }
    EXPECT_EQ(weights[0] == weights[1], true);
    EXPECT_EQ(losses[0][0], losses[1][0]);
    for (std::size_t i = 1; i < losses[0].size(); ++i) EXPECT_NEAR(losses[0][i] / losses[1][i], 1, 1e-2) << i;
    EXPECT_LT(bytes[1], bytes[0]);
  }
}

TEST_F(GpuTrainingStep, DrawsTheWeightsInHalvesThatItDrawsWhole) {
  const auto drawn = [&](bool whole) {
    Transformer model(model::tiny_config(), {.precision = Precision::bf16_fused, .whole_weights = whole}, stream);
    draw_weights(model, 3);
    const model::ParameterArena& arena = model.parameters();
    std::vector<double> all = weights_of(model);
    const std::vector<double> gain = model::values_of(arena.weights(arena.layout().layer(1).ln1), stream);
    all.insert(all.end(), gain.begin(), gain.end());
    return all;
  };
  EXPECT_EQ(drawn(true) == drawn(false), true);
}

// Of one position, where gradients of Q and K are nothing in every step.
TEST_F(GpuTrainingStep, IsHeldToTheReferenceAtOnePosition) {
  for (const Precision precision : {Precision::fp32, Precision::bf16_amp, Precision::bf16_fused}) {
    for (const Variant variant : {Variant::eager, Variant::fused, Variant::graph}) {
      WorkloadOptions workload{.config = model::tiny_config(), .model = {.precision = precision, .variant = variant}};
      workload.config.context = 1;
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        const StepCheck found = steps_against_reference(workload, stream, seed);
        EXPECT_LE(found.error, found.tolerance) << found.message << ", seed " << seed;
      }
    }
  }
}

TEST_F(GpuTrainingStep, FollowsTheReferenceForThreeSteps) {
  Transformer reference(model::tiny_config(), {.precision = Precision::fp64}, {});
  model::set_weights(reference);
  TrainingStep exact(reference, {}, 2, 32);
  losses_of(exact, 3);
  const std::vector<double> expected = weights_of(reference);
  const std::pair<Precision, double> bounds[] = {
      {Precision::fp32, 1e-5}, {Precision::tf32, 1e-2}, {Precision::bf16_amp, 2e-2}, {Precision::bf16_fused, 2e-2}};
  for (const auto& [precision, bound] : bounds) {
    for (const Variant variant : {Variant::eager, Variant::fused}) {
      Transformer model = tiny(precision, variant);
      TrainingStep step(model, {}, 2, 32);
      losses_of(step, 3);
      EXPECT_LT(model::relative_distance(weights_of(model), expected), bound)
          << to_string(precision) << " " << to_string(variant);
    }
  }
}

TEST_F(GpuTrainingStep, SkipsAStepWhoseScaledGradientsOverflowAndTakesTheNext) {
  Transformer model = tiny(Precision::fp16_amp, Variant::fused);
  StepOptions options;
  options.optimizer.skip_non_finite = true;
  TrainingStep step(model, options, 2, 32);
  LossScaler scaler({.initial_scale = 0x1p40F});
  const std::vector<double> before = weights_of(model);
  const model::Sequences batch = model::random_sequences(model::tiny_config(), 2, 32);
  step.load(0, batch.ids, batch.targets);
  step.run(1e-2, scaler.scale());
  ASSERT_TRUE(step.result().skipped);
  EXPECT_EQ(weights_of(model), before);
  int tries = 0;
  while (!scaler.update(step.result().skipped) && ++tries < 40) step.run(1e-2, scaler.scale());
  EXPECT_FALSE(step.result().skipped);
  EXPECT_LT(scaler.scale(), 0x1p40F);
  EXPECT_NE(weights_of(model), before);
}

TEST_F(GpuTrainingStep, LeavesNoMemoryBehindAGraph) {
  device::synchronize(kGpu);
  const std::int64_t before = device::MemoryLog::of(kGpu).live_bytes();
  {
    Transformer model = tiny(Precision::bf16_fused, Variant::graph);
    TrainingStep step(model, {}, 2, 32);
    losses_of(step, 4);
  }
  EXPECT_EQ(device::MemoryLog::of(kGpu).live_bytes(), before);
}

}  // namespace
}  // namespace syslab::train
