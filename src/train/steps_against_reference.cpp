#include "train/steps_against_reference.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "model/initialise.hpp"
#include "train/reference_steps.hpp"

namespace syslab::train {
namespace {

// Large, so that a step that is left out shows: three steps move a weight by a fifth of its size.
constexpr double kLearningRate = 1e-2;
constexpr std::int64_t kSequences = 2;

// A model in training, from the weights of one seed over the tokens of another.
class ComparedSteps {
 public:
  ComparedSteps(const model::ModelConfig& config, const model::TransformerOptions& options,
                const OptimizerOptions& optimizer, device::Stream stream, std::uint64_t seed)
      : model_(config, options, stream),
        step_(model_, {.optimizer = optimizer}, kSequences, config.context),
        source_({.rows = kSequences, .context = config.context, .vocab = config.vocab, .seed = seed}) {
    model::initialise(model_.parameters(), seed);
  }

  const Batch& load(int t) {
    source_.draw(static_cast<std::uint64_t>(t - 1), batch_);
    step_.load(0, batch_.x, batch_.y);
    return batch_;
  }
  void take() { step_.run(kLearningRate); }

  const model::ParameterLayout& layout() const { return model_.parameters().layout(); }
  ByParameter all(model::Plane plane) const {
    ByParameter made;
    for (int i = 0; i < layout().size(); ++i) made.push_back(model_.parameters().read(plane, i));
    return made;
  }

 private:
  model::Transformer model_;
  TrainingStep step_;
  RandomBatches source_;
  Batch batch_;
};

}  // namespace

StepCheck steps_against_reference(const WorkloadOptions& options, device::Stream stream, std::uint64_t seed) {
  const model::ModelConfig small = model::reduced(options.config);
  OptimizerOptions optimizer = options.optimizer;
  optimizer.adamw.lr = kLearningRate;
  ReferenceSteps expected(small, options.model, optimizer, kSequences, small.context);
  model::initialise(expected.model().parameters(), seed);
  ComparedSteps found(small, options.model, optimizer, stream, seed);
  double distance = 0;
  for (int t = 1; t <= kCheckedSteps; ++t) {
    const Batch& batch = found.load(t);
    expected.take(batch.x, batch.y);
    found.take();
    distance = expected.follow(found.all(model::Plane::weight));
  }
  return {"weights", distance, model::tolerance_of(options.model.precision, small.layers).gradients,
          fmt::format("after {} steps of {} in {}, {}", kCheckedSteps, to_string(small),
                      to_string(options.model.precision), to_string(options.model.variant))};
}

}  // namespace syslab::train
