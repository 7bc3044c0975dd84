// What a benchmark's step holds in each mode, and what it says of a loss that is no number.
#include "train/workload.hpp"

#include <gtest/gtest.h>

#include "device/memory_log.hpp"
#include "tests/model/model_fixture.hpp"
#include "train/params.hpp"
#include "train/peak_memory.hpp"

namespace syslab::train {
namespace {

using model::Plane;

WorkloadOptions tiny(Mode mode) {
  WorkloadOptions options;
  options.config = model::tiny_config();
  options.mode = mode;
  options.batch = 2;
  options.seq = 32;
  return options;
}

TEST(Workload, HoldsGradientsAndMomentsOnlyWhereItsModeNeedsThem) {
  for (const Mode mode : {Mode::forward, Mode::forward_backward, Mode::train}) {
    Workload workload(tiny(mode), {}, 1);
    const model::ParameterArena& arena = workload.model().parameters();
    EXPECT_EQ(arena.has(Plane::gradient), mode != Mode::forward) << to_string(mode);
    EXPECT_EQ(arena.has(Plane::first_moment), mode == Mode::train) << to_string(mode);
    workload.refresh();
    workload.run();
    EXPECT_GT(workload.loss(), 1.0) << to_string(mode);
    EXPECT_EQ(workload.what_is_wrong(), std::nullopt);

    // Padding aside, what is predicted is what is there.
    const StepBytes bytes = predicted_parts(tiny(mode));
    const double predicted = bytes.weights + bytes.copy + bytes.gradients + bytes.moments;
    EXPECT_NEAR(predicted, static_cast<double>(arena.bytes()), 0.01 * predicted) << to_string(mode);
  }
}

TEST(Workload, DrawsTheWeightsInHalvesThatItDrawsWhole) {
  const model::ModelConfig config = model::tiny_config();
  const model::Kernels kernels =
      model::kernels_of(config, model::Precision::fp32, model::Variant::fused, {device::Kind::cpu});
  model::ParameterArena whole(model::ParameterLayout(config), {}, {});
  model::ParameterArena split(model::ParameterLayout(config), {.copy_dtype = DType::bf16, .split = true}, {});
  draw_weights(whole, kernels, 3);
  draw_weights(split, kernels, 3);
  for (int i = 0; i < whole.layout().size(); ++i) {
    EXPECT_EQ(split.read(Plane::weight, i), whole.read(Plane::weight, i)) << whole.layout().info(i).name;
  }
}

// What is predicted of halves is what an arena takes of them.
TEST(Workload, PredictsFourBytesOfAWeightInHalves) {
  WorkloadOptions options = tiny(Mode::train);
  options.model.precision = model::Precision::bf16_fused;
  const double parameters = static_cast<double>(model::parameter_count(options.config));
  const auto held = [&](bool split) {
    model::ParameterArena arena(model::ParameterLayout(options.config), {.copy_dtype = DType::bf16, .split = split},
                                {});
    return static_cast<double>(arena.bytes());
  };
  const auto predicted = [&] {
    const PeakBytes peak = predicted_peak(options, MemoryPass::step);
    const double tables = static_cast<double>(options.config.context * options.config.head_dim()) * 4;
    return peak.parameters - tables + peak.gradients + peak.optimizer;
  };
  EXPECT_NEAR(predicted(), held(true), 0.01 * predicted());
  EXPECT_EQ(predicted_parts(options).copy, 0);
  options.model.variant = model::Variant::eager;
  EXPECT_NEAR(predicted(), held(false), 0.01 * predicted());
  EXPECT_EQ(predicted_parts(options).copy, 2 * parameters);
  options.model.variant = model::Variant::graph;
  options.model.whole_weights = true;
  EXPECT_EQ(predicted_parts(options).copy, 2 * parameters);
}

TEST(Workload, GivesTheSameLossInEveryMode) {
  const auto first_loss = [](Mode mode) {
    Workload workload(tiny(mode), {}, 1);
    workload.refresh();
    workload.run();
    return workload.loss();
  };
  EXPECT_EQ(first_loss(Mode::forward), first_loss(Mode::train));
  EXPECT_EQ(first_loss(Mode::forward_backward), first_loss(Mode::train));
}

// What blocks hold between the passes and what a step holds at its highest, measured: predicted but for padding.
TEST(Workload, RecomputesActivationsAsPredicted) {
  const auto last_weights = [](const WorkloadOptions& options, double& block_forwards) {
    device::MemoryLog& log = device::MemoryLog::global();
    const std::int64_t before = log.live_bytes();
    Workload workload(options, {}, 1);
    for (int i = 0; i < 3; ++i) {
      workload.refresh();
      if (i == 0) log.reset_peak();
      workload.run();
    }
    const double peak = predicted_bytes(options);
    EXPECT_NEAR(static_cast<double>(log.peak_bytes() - before), peak, 0.03 * peak)
        << to_string(options.model.recompute);
    block_forwards = workload.block_forwards();
    workload.forward();
    double kept = 0;
    for (const model::KeptTensor& one : model::listed(*workload.training().kept())) {
      kept += one.name.starts_with("layers.") ? static_cast<double>(one.bytes()) : 0;
    }
    const double predicted = predicted_parts(options).kept;
    EXPECT_NEAR(kept, predicted, 0.01 * predicted) << to_string(options.model.recompute);
    workload.backward();
    EXPECT_EQ(workload.training().kept(), nullptr);
    return workload.model().parameters().read(Plane::weight, 3);
  };
  WorkloadOptions options = tiny(Mode::train);
  options.config.layers = 4;
  double forwards = 0;
  const std::vector<double> expected = last_weights(options, forwards);
  EXPECT_EQ(forwards, 4);
  for (const model::Variant variant : {model::Variant::fused, model::Variant::graph}) {
    options.model.variant = variant;
    options.model.recompute = model::segments_of(1);
    EXPECT_EQ(last_weights(options, forwards), expected);
    EXPECT_EQ(forwards, 7);
  }
}

TEST(Workload, SaysThatStepsBeforeLedToALossThatIsNoNumber) {
  WorkloadOptions options = tiny(Mode::train);
  options.optimizer.adamw.lr = 1e30;
  Workload workload(options, {}, 1);
  for (int i = 0; i < 3; ++i) {
    workload.refresh();
    workload.run();
  }
  const std::optional<std::string> wrong = workload.what_is_wrong();
  ASSERT_TRUE(wrong.has_value());
  EXPECT_NE(wrong->find("the loss is "), std::string::npos) << *wrong;
  EXPECT_NE(wrong->find("steps before this one led there"), std::string::npos) << *wrong;
}

}  // namespace
}  // namespace syslab::train
