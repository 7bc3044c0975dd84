// Steps of a small transformer on rows of the same batches, whoever takes them, and what one process makes of them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "parallel/step_ranks.hpp"
#include "tests/model/model_fixture.hpp"
#include "tests/parallel/ranks_fixture.hpp"
#include "train/reference_steps.hpp"
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
  std::vector<double> losses;  // by step
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
  }
  made.weights = weights_of(model);
  return made;
}

// The same, by parameter.
inline train::ByParameter parameters_of(const model::Transformer& model) {
  train::ByParameter all;
  for (int i = 0; i < model.parameters().layout().size(); ++i) {
    all.push_back(model.parameters().read(model::Plane::weight, i));
  }
  return all;
}

// What fp64 makes of the steps of ranks, which are held to the bounds of train/reference_steps.hpp. Each step begins
// with the ranks' weights: from one to the next fp32 has no bound that another number of ranks, another order of sums
// or another processor's products would keep.
class ExactSteps {
 public:
  ExactSteps(const model::ModelConfig& config, train::OptimizerOptions optimizer)
      : steps_(config, {}, at_our_rate(optimizer), kRows, kSeq), max_norm_(optimizer.max_norm) {
    model::set_weights(steps_.model(), 1);
  }

  void begin_with(const train::ByParameter& weights) { steps_.set_weights(weights); }

  // That a step of ranks, as it came out, was this one's.
  void expect_step(const model::Sequences& batch, const parallel::DataParallelResult& found,
                   const train::ByParameter& weights) {
    steps_.take(batch.ids, batch.targets);
    EXPECT_NEAR(found.loss, steps_.loss().value, steps_.loss().bound);
    const auto& [norm, bound] = steps_.norm();
    double clip_error = 0;
    if (found.gradient_norm) {
      EXPECT_NEAR(*found.gradient_norm, norm, bound);
      // Of the factor max / norm: the norm's, and three roundings.
      if (max_norm_ && norm > *max_norm_) clip_error = std::abs(*found.gradient_norm / norm - 1) + 3 * 0x1p-24;
    }
    EXPECT_EQ(steps_.follow(weights, clip_error), 0) << "weights are further off than rounding reaches";
  }

 private:
  static train::OptimizerOptions at_our_rate(train::OptimizerOptions optimizer) {
    optimizer.adamw.lr = kRate;
    return optimizer;
  }

  train::ReferenceSteps steps_;
  std::optional<double> max_norm_;
};

}  // namespace syslab::test
