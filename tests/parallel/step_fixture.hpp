// Steps of a small transformer on rows of the same batches, whoever takes them, and what one process makes of them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "parallel/step_ranks.hpp"
#include "tests/model/model_fixture.hpp"
#include "tests/parallel/ranks_fixture.hpp"
#include "train/step.hpp"

namespace syslab::test {

inline constexpr std::int64_t kSeq = 8, kRows = 6;
inline constexpr double kRate = 1e-2;

inline model::ModelConfig small_config() {
  model::ModelConfig config = model::tiny_config();
  config.d_model = 32;
  config.d_ff = 64;
  return config;
}

inline model::Sequences batch_of(const model::ModelConfig& config, int number) {
  return model::random_sequences(config, kRows, kSeq, static_cast<std::uint64_t>(100 + number));
}

// Rows [first, first + count) of a batch into a part of a step.
template <typename Step>
void load(Step& step, int part, const model::Sequences& batch, std::int64_t first, std::int64_t count) {
  const auto at = static_cast<std::size_t>(first * kSeq), size = static_cast<std::size_t>(count * kSeq);
  step.load(part, std::span(batch.ids).subspan(at, size), std::span(batch.targets).subspan(at, size));
}

// Of all parameters, one behind the other.
inline std::vector<double> weights_of(const model::Transformer& model) {
  std::vector<double> all;
  for (int i = 0; i < model.parameters().layout().size(); ++i) {
    const std::vector<double> one = model.parameters().read(model::Plane::weight, i);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

struct Training {
  std::vector<double> weights;
  std::vector<double> losses, norms;  // by step. Adam forgives a gradient that is too large: its norm tells
};

inline Training train_alone(const model::ModelConfig& config, const train::OptimizerOptions& optimizer, int steps) {
  model::Transformer model(config, {}, {});
  model::set_weights(model, 1);
  train::TrainingStep step(model, {.optimizer = optimizer}, kRows, kSeq);
  Training made;
  for (int i = 0; i < steps; ++i) {
    load(step, 0, batch_of(config, i), 0, kRows);
    step.run(kRate);
    made.losses.push_back(step.result().loss);
    made.norms.push_back(step.result().gradient_norm.value_or(0));
  }
  made.weights = weights_of(model);
  return made;
}

// That a step of several ranks, clipped, was as one process's.
inline void expect_step(const parallel::DataParallelResult& found, const Training& alone, int step) {
  const double norm = alone.norms[static_cast<std::size_t>(step)];
  EXPECT_NEAR(found.loss, alone.losses[static_cast<std::size_t>(step)], 1e-5);
  // Of the same weights in the first step; later ones differ by what fp32 rounded on the way.
  EXPECT_NEAR(found.gradient_norm.value(), norm, (step == 0 ? 1e-6 : 1e-4) * norm);
}

}  // namespace syslab::test
