#include "train/steps_against_reference.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "model/initialise.hpp"

namespace syslab::train {
namespace {

// Large, so that a step that is not taken shows: three of them move a weight by a fifth of its size.
constexpr double kLearningRate = 1e-2;

// How far AdamW may carry a weight in step t though its exact gradient is nothing (model::vanishing): it knows no size
// of gradients, and goes where rounding points as far as anywhere, lr·|m̂|/√v̂. |Σaᵢgᵢ| ≤ √(Σaᵢ²/bᵢ)·√(Σbᵢgᵢ²), of the
// weights aᵢ that m̂ has for each gradient and bᵢ that v̂ has: 1 in the first step, hardly more in others.
double reach_of_rounding(const adamw::Options& options, int t) {
  double squares = 0;
  for (int age = 0; age < t; ++age) {
    const double a = (1 - options.beta1) * std::pow(options.beta1, age) / (1 - std::pow(options.beta1, t)),
                 b = (1 - options.beta2) * std::pow(options.beta2, age) / (1 - std::pow(options.beta2, t));
    squares += a == 0 ? 0 : a * a / b;
  }
  return kLearningRate * std::sqrt(squares);
}

// By registration order.
struct Walked {
  std::vector<std::vector<double>> weights;
  std::vector<double> reach;  // of rounding, over all steps in which a gradient vanished
};

Walked walked(const model::ModelConfig& config, const model::TransformerOptions& model_options,
              const OptimizerOptions& optimizer, device::Stream stream, std::uint64_t seed) {
  constexpr std::int64_t kSequences = 2;
  model::Transformer model(config, model_options, stream);
  const model::ParameterArena& arena = model.parameters();
  const int parameters = arena.layout().size();
  model::initialise(model.parameters(), seed);
  TrainingStep step(model, {.optimizer = optimizer}, kSequences, config.context);
  const RandomBatches source({.rows = kSequences, .context = config.context, .vocab = config.vocab, .seed = seed});
  Batch batch;
  Walked made{.weights = {}, .reach = std::vector<double>(static_cast<std::size_t>(parameters))};
  for (int t = 1; t <= kCheckedSteps; ++t) {
    source.draw(static_cast<std::uint64_t>(t - 1), batch);
    step.load(0, batch.x, batch.y);
    step.run(kLearningRate);
    std::vector<double> norms;
    for (int i = 0; i < parameters; ++i) {
      double squares = 0;
      for (const double g : arena.read(model::Plane::gradient, i)) squares += g * g;
      norms.push_back(std::sqrt(squares));
    }
    const std::vector<bool> vanished = vanishing(arena.layout(), norms);
    for (std::size_t i = 0; i < norms.size(); ++i) {
      if (vanished[i]) made.reach[i] += reach_of_rounding(optimizer.adamw, t);
    }
  }
  for (int i = 0; i < parameters; ++i) made.weights.push_back(arena.read(model::Plane::weight, i));
  return made;
}

}  // namespace

model::Distance steps_against_reference(const WorkloadOptions& options, device::Stream stream, std::uint64_t seed) {
  const model::ModelConfig small = model::reduced(options.config);
  const Walked expected = walked(small, {.precision = model::Precision::fp64}, options.optimizer, {}, seed);
  const Walked found = walked(small, options.model, options.optimizer, stream, seed);
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < expected.weights.size(); ++i) {
    for (std::size_t n = 0; n < expected.weights[i].size(); ++n) {
      const double exact = expected.weights[i][n], apart = std::abs(found.weights[i][n] - exact);
      const double beyond = apart <= expected.reach[i] ? 0 : apart - expected.reach[i];  // of a NaN, one
      difference += beyond * beyond;
      norm += exact * exact;
    }
  }
  return {"weights", std::sqrt(difference / norm), model::tolerance_of(options.model.precision, small.layers).gradients,
          fmt::format("after {} steps of {} in {}, {}", kCheckedSteps, to_string(small),
                      to_string(options.model.precision), to_string(options.model.variant))};
}

}  // namespace syslab::train
