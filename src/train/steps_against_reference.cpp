#include "train/steps_against_reference.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "model/initialise.hpp"
#include "train/reach_of_rounding.hpp"
#include "train/rounding_of_gradients.hpp"

namespace syslab::train {
namespace {

// Large, so that a step that is left out shows: three steps move a weight by a fifth of its size.
constexpr double kLearningRate = 1e-2;

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

  void load(int t) {
    source_.draw(static_cast<std::uint64_t>(t - 1), batch_);
    step_.load(0, batch_.x, batch_.y);
  }
  void take() { step_.run(kLearningRate); }

  // For the weights that are loaded, in fp64 (train/rounding_of_gradients.hpp).
  ByParameter gradients_of_targets() {
    const model::Tokens tokens = step_.tokens(0);
    model::Activations kept = model_.forward(tokens);
    model_.loss_and_gradient(kept, tokens.ids + tokens.count(), {});
    model::leave_targets(kept.logits, batch_.y);
    model_.backward(std::move(kept), {});
    return all(model::Plane::gradient);
  }

  // The factor that multiplied the last step's gradients.
  double clip() {
    const std::optional<double> most = step_.optimizer().options().max_norm, norm = step_.result().gradient_norm;
    return most && norm && *norm > *most ? *most / *norm : 1;
  }

  std::int64_t positions() const { return step_.tokens(0).count(); }
  const model::ParameterLayout& layout() const { return model_.parameters().layout(); }
  ByParameter all(model::Plane plane) const {
    ByParameter made;
    for (int i = 0; i < layout().size(); ++i) made.push_back(model_.parameters().read(plane, i));
    return made;
  }
  void set_weights(const ByParameter& weights) {
    for (int i = 0; i < layout().size(); ++i) {
      const ConstTensorView view(weights[static_cast<std::size_t>(i)].data(), DType::f64, layout().info(i).shape);
      model_.parameters().write(model::Plane::weight, i, 0, view);
    }
  }

 private:
  static constexpr std::int64_t kSequences = 2;
  model::Transformer model_;
  TrainingStep step_;
  RandomBatches source_;
  Batch batch_;
};

// The reference's steps, compared with another's.
class Reference {
 public:
  Reference(const model::ModelConfig& config, const WorkloadOptions& options, std::uint64_t seed)
      : walk_(config, {.precision = model::Precision::fp64, .plant = model::recording_queries(exact_.queries)},
              options.optimizer, {}, seed),
        other_(options.model) {
    adamw::Options adamw = options.optimizer.adamw;
    adamw.lr = kLearningRate;
    for (const model::ParameterInfo& info : walk_.layout().infos()) {
      reaches_.emplace_back(static_cast<std::size_t>(info.shape[0]), ReachOfRounding(adamw));
    }
  }

  void take(int t) {
    walk_.load(t);
    exact_.positions = walk_.positions();
    exact_.weights = walk_.all(model::Plane::weight);
    exact_.of_targets = walk_.gradients_of_targets();
    exact_.queries.clear();
    walk_.take();
    exact_.gradients = walk_.all(model::Plane::gradient);
    const ByParameter rounding = rounding_of_gradients(walk_.layout(), exact_, other_);
    const double clip = walk_.clip();
    for (std::size_t i = 0; i < rounding.size(); ++i) {
      for (std::size_t row = 0; row < reaches_[i].size(); ++row) {
        reaches_[i][row].step(clip * rounding[i][rounding[i].size() == 1 ? 0 : row]);
      }
    }
  }

  // ‖found − exact‖ / ‖exact‖ of the weights that are further off than rounding reaches. The others are as right as
  // the reference's, which go on from there: a gradient of the next step is then that of the same weights.
  double distance_and_follow(const ByParameter& found) {
    const ByParameter m = walk_.all(model::Plane::first_moment), v = walk_.all(model::Plane::second_moment);
    ByParameter weights = walk_.all(model::Plane::weight);
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const std::size_t count = weights[i].size() / reaches_[i].size();
      for (std::size_t n = 0; n < weights[i].size(); ++n) {
        double& exact = weights[i][n];
        const double apart = std::abs(found[i][n] - exact);
        norm += exact * exact;
        if (apart <= reaches_[i][n / count].of(m[i][n], v[i][n])) {
          exact = found[i][n];
        } else {
          difference += apart * apart;  // of a NaN, one
        }
      }
    }
    walk_.set_weights(weights);
    return std::sqrt(difference / norm);
  }

 private:
  ExactPass exact_;
  ComparedSteps walk_;
  model::TransformerOptions other_;
  std::vector<std::vector<ReachOfRounding>> reaches_;  // by parameter and row
};

}  // namespace

StepCheck steps_against_reference(const WorkloadOptions& options, device::Stream stream, std::uint64_t seed) {
  const model::ModelConfig small = model::reduced(options.config);
  Reference expected(small, options, seed);
  ComparedSteps found(small, options.model, options.optimizer, stream, seed);
  double distance = 0;
  for (int t = 1; t <= kCheckedSteps; ++t) {
    expected.take(t);
    found.load(t);
    found.take();
    distance = expected.distance_and_follow(found.all(model::Plane::weight));
  }
  return {"weights", distance, model::tolerance_of(options.model.precision, small.layers).gradients,
          fmt::format("after {} steps of {} in {}, {}", kCheckedSteps, to_string(small),
                      to_string(options.model.precision), to_string(options.model.variant))};
}

}  // namespace syslab::train
