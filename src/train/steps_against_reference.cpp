#include "train/steps_against_reference.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "model/initialise.hpp"

namespace syslab::train {
namespace {

// Large, so that a step that is not taken shows: three of them move a weight by a fifth of its size.
constexpr double kLearningRate = 1e-2;

std::vector<double> weights_after(const model::ModelConfig& config, const model::TransformerOptions& model_options,
                                  const OptimizerOptions& optimizer, device::Stream stream, std::uint64_t seed) {
  constexpr std::int64_t kSequences = 2;
  model::Transformer model(config, model_options, stream);
  model::initialise(model.parameters(), seed);
  TrainingStep step(model, {.optimizer = optimizer}, kSequences, config.context);
  const RandomBatches source({.rows = kSequences, .context = config.context, .vocab = config.vocab, .seed = seed});
  Batch batch;
  for (std::uint64_t number = 0; number < kCheckedSteps; ++number) {
    source.draw(number, batch);
    step.load(0, batch.x, batch.y);
    step.run(kLearningRate);
  }
  std::vector<double> all;
  for (int i = 0; i < model.parameters().layout().size(); ++i) {
    const std::vector<double> one = model.parameters().read(model::Plane::weight, i);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

}  // namespace

model::Distance steps_against_reference(const WorkloadOptions& options, device::Stream stream, std::uint64_t seed) {
  const model::ModelConfig small = model::reduced(options.config);
  const std::vector<double> expected =
      weights_after(small, {.precision = model::Precision::fp64}, options.optimizer, {}, seed);
  const std::vector<double> found = weights_after(small, options.model, options.optimizer, stream, seed);
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += (found[i] - expected[i]) * (found[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return {"weights", std::sqrt(difference / norm), model::tolerance_of(options.model.precision, small.layers).gradients,
          fmt::format("after {} steps of {} in {}, {}", kCheckedSteps, to_string(small),
                      to_string(options.model.precision), to_string(options.model.variant))};
}

}  // namespace syslab::train
