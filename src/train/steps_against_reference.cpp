#include "train/steps_against_reference.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "model/initialise.hpp"

namespace syslab::train {
namespace {

// Large, so that a step that is not taken shows: three of them move a weight by a fifth of its size.
constexpr double kLearningRate = 1e-2;

// How far AdamW may carry a weight in step t though all its exact gradients are nothing (model::vanishing): it knows no
// size of gradients, and goes where rounding points as far as anywhere, lr·|m̂|/√v̂. |Σaᵢgᵢ| ≤ √(Σaᵢ²/bᵢ)·√(Σbᵢgᵢ²), of
// the weights aᵢ that m̂ has for each gradient and bᵢ that v̂ has: 1 in the first step, hardly more in others.
double reach_of_rounding(const adamw::Options& options, int t) {
  double squares = 0;
  for (int age = 0; age < t; ++age) {
    const double a = (1 - options.beta1) * std::pow(options.beta1, age) / (1 - std::pow(options.beta1, t)),
                 b = (1 - options.beta2) * std::pow(options.beta2, age) / (1 - std::pow(options.beta2, t));
    squares += a == 0 ? 0 : a * a / b;
  }
  return kLearningRate * std::sqrt(squares);
}

// A model on its way, from the weights of a seed over the tokens of a seed.
class Walk {
 public:
  Walk(const model::ModelConfig& config, const model::TransformerOptions& options, const OptimizerOptions& optimizer,
       device::Stream stream, std::uint64_t seed)
      : model_(config, options, stream),
        step_(model_, {.optimizer = optimizer}, kSequences, config.context),
        source_({.rows = kSequences, .context = config.context, .vocab = config.vocab, .seed = seed}) {
    model::initialise(model_.parameters(), seed);
  }

  void take(int t) {
    Batch batch;
    source_.draw(static_cast<std::uint64_t>(t - 1), batch);
    step_.load(0, batch.x, batch.y);
    step_.run(kLearningRate);
  }

  const model::ParameterLayout& layout() const { return model_.parameters().layout(); }
  std::vector<double> weights(int parameter) const { return model_.parameters().read(model::Plane::weight, parameter); }
  void set_weights(int parameter, const std::vector<double>& values) {
    const ConstTensorView view(values.data(), DType::f64, layout().info(parameter).shape);
    model_.parameters().write(model::Plane::weight, parameter, 0, view);
  }

  // By parameter, whether the gradient of the last step is nothing.
  std::vector<bool> vanished() const {
    std::vector<double> norms;
    for (int i = 0; i < layout().size(); ++i) {
      double squares = 0;
      for (const double g : model_.parameters().read(model::Plane::gradient, i)) squares += g * g;
      norms.push_back(std::sqrt(squares));
    }
    return vanishing(layout(), norms);
  }

 private:
  static constexpr std::int64_t kSequences = 2;
  model::Transformer model_;
  TrainingStep step_;
  RandomBatches source_;
};

// Σ of squares of what weights are apart by more than `reach`.
double squares_beyond(double reach, const std::vector<double>& found, const std::vector<double>& exact) {
  double squares = 0;
  for (std::size_t n = 0; n < exact.size(); ++n) {
    const double apart = std::abs(found[n] - exact[n]);
    const double beyond = apart <= reach ? 0 : apart - reach;  // of a NaN, one
    squares += beyond * beyond;
  }
  return squares;
}

}  // namespace

model::Distance steps_against_reference(const WorkloadOptions& options, device::Stream stream, std::uint64_t seed) {
  const model::ModelConfig small = model::reduced(options.config);
  Walk expected(small, {.precision = model::Precision::fp64}, options.optimizer, {}, seed),
      found(small, options.model, options.optimizer, stream, seed);
  const int parameters = expected.layout().size();
  double difference = 0, norm = 0;
  // Of weights that no gradient has moved yet, each step is held to its reach, and the next begins where the reference
  // stands: a gradient that comes later is that of the same weights, as all others are.
  std::vector<bool> unmoved(static_cast<std::size_t>(parameters), true);
  for (int t = 1; t <= kCheckedSteps; ++t) {
    expected.take(t);
    found.take(t);
    const std::vector<bool> vanished = expected.vanished();
    for (int i = 0; i < parameters; ++i) {
      const auto at = static_cast<std::size_t>(i);
      unmoved[at] = unmoved[at] && vanished[at];
      if (!unmoved[at]) continue;
      const std::vector<double> exact = expected.weights(i);
      difference += squares_beyond(reach_of_rounding(options.optimizer.adamw, t), found.weights(i), exact);
      found.set_weights(i, exact);
    }
  }
  for (int i = 0; i < parameters; ++i) {
    const std::vector<double> exact = expected.weights(i);
    difference += squares_beyond(0, found.weights(i), exact);  // a rounding, where it was set
    for (const double weight : exact) norm += weight * weight;
  }
  return {"weights", std::sqrt(difference / norm), model::tolerance_of(options.model.precision, small.layers).gradients,
          fmt::format("after {} steps of {} in {}, {}", kCheckedSteps, to_string(small),
                      to_string(options.model.precision), to_string(options.model.variant))};
}

}  // namespace syslab::train
