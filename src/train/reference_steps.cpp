#include "train/reference_steps.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/dtype.hpp"

namespace syslab::train {
namespace {

// Of a norm of norms: of stretches, of ranks, of all (parallel/shard_norm.hpp), and of the result.
constexpr double kNormRoundings = 4;

}  // namespace

ReferenceSteps::ReferenceSteps(const model::ModelConfig& config, const model::TransformerOptions& other,
                               const OptimizerOptions& optimizer, std::int64_t rows, std::int64_t seq)
    : model_(config, {.precision = model::Precision::fp64, .plant = model::recording_queries(exact_.queries)}, {}),
      step_(model_, {.optimizer = optimizer}, rows, seq),
      other_(other),
      adamw_(optimizer.adamw),
      max_norm_(optimizer.max_norm) {
  exact_.positions = rows * seq;
  for (const model::ParameterInfo& info : layout().infos()) {
    reaches_.emplace_back(static_cast<std::size_t>(info.shape[0]), ReachOfRounding(adamw_));
  }
}

ByParameter ReferenceSteps::all(model::Plane plane) const {
  ByParameter made;
  for (int i = 0; i < layout().size(); ++i) made.push_back(model_.parameters().read(plane, i));
  return made;
}

void ReferenceSteps::set_weights(const ByParameter& weights) {
  for (int i = 0; i < layout().size(); ++i) {
    const ConstTensorView view(weights[static_cast<std::size_t>(i)].data(), DType::f64, layout().info(i).shape);
    model_.parameters().write(model::Plane::weight, i, 0, view);
  }
}

// What the step's bounds need besides the step: the logits' size, and the gradients of the targets' term alone.
void ReferenceSteps::look_before(std::span<const std::int64_t> targets) {
  exact_.weights = all(model::Plane::weight);
  const model::Tokens tokens = step_.tokens(0);
  model::Activations kept = model_.forward(tokens);
  const ConstTensorView logits = kept.logits.view();
  double squares = 0;
  largest_logit_ = 0;
  for (std::int64_t i = 0; i < logits.elements(); ++i) {
    const double logit = logits.as<double>()[i];
    squares += logit * logit;
    largest_logit_ = std::max(largest_logit_, std::abs(logit));
  }
  logits_ = std::sqrt(squares);
  model_.loss_and_gradient(kept, tokens.ids + tokens.count(), {});
  model::leave_targets(kept.logits, {targets.begin(), targets.end()});
  model_.backward(std::move(kept), {});
  exact_.of_targets = all(model::Plane::gradient);
  exact_.queries.clear();
}

double ReferenceSteps::rounding_of_loss() const {
  const model::ModelConfig& config = layout().config();
  const double unit = unit_roundoff(model::dtypes_of(other_.precision, other_.variant).statistics);
  const auto rows = static_cast<double>(exact_.positions);
  const double of_logits = std::sqrt(2.0) * rounding_of_passes(config, other_, 1, 0) * logits_ / rows;
  const double of_rows = 16 * unit * (1 + largest_logit_ + std::log(static_cast<double>(config.vocab)));
  return of_logits + of_rows / std::sqrt(rows) + rows * unit * std::abs(loss_.value);
}

// The factor that multiplied the last step's gradients.
double ReferenceSteps::clip() const { return max_norm_ && norm_.value > *max_norm_ ? *max_norm_ / norm_.value : 1; }

void ReferenceSteps::take(std::span<const std::int64_t> ids, std::span<const std::int64_t> targets) {
  step_.load(0, ids, targets);
  look_before(targets);
  step_.begin(adamw_.lr);
  step_.forward(0);
  step_.backward(0);
  exact_.gradients = all(model::Plane::gradient);  // in fp64 an update that clips overwrites them
  step_.update();
  ++steps_;
  loss_.value = step_.result().loss;
  loss_.bound = rounding_of_loss();
  const ByParameter rounding = rounding_of_gradients(layout(), exact_, other_);
  double squares = 0, off = 0;
  for (std::size_t i = 0; i < rounding.size(); ++i) {
    const double count = static_cast<double>(exact_.gradients[i].size()) / static_cast<double>(rounding[i].size());
    for (const double one : rounding[i]) off += count * one * one;
    for (const double one : exact_.gradients[i]) squares += one * one;
  }
  norm_.value = std::sqrt(squares);
  norm_.bound = std::sqrt(off) + kNormRoundings * unit_roundoff(DType::f32) * norm_.value;
  for (std::size_t i = 0; i < rounding.size(); ++i) {
    for (std::size_t row = 0; row < reaches_[i].size(); ++row) {
      reaches_[i][row].step(clip() * rounding[i][rounding[i].size() == 1 ? 0 : row]);
    }
  }
}

double ReferenceSteps::follow(const ByParameter& found, double clip_error) {
  // Of weights and moments, which are fp32 in each precision but fp64. The reference's round, too.
  const double unit =
      unit_roundoff(model::dtypes_of(other_.precision, other_.variant).weights) + unit_roundoff(DType::f64);
  clip_error_ = std::max(clip_error_, clip_error);
  const ByParameter m = all(model::Plane::first_moment), v = all(model::Plane::second_moment);
  ByParameter weights = all(model::Plane::weight);
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::size_t count = weights[i].size() / reaches_[i].size();
    for (std::size_t n = 0; n < weights[i].size(); ++n) {
      double& exact = weights[i][n];
      const ReachOfRounding& reach = reaches_[i][n / count];
      // A row whose token is not there has no gradient, and its decay rounds all the same.
      const double most = reach.of(m[i][n], v[i][n]) + 3 * unit * std::abs(exact) +
                          adamw_.lr * reach.largest_step() * (2 * clip_error_ + (2 * steps_ + 10) * unit);
      const double apart = std::abs(found[i][n] - exact);
      norm += exact * exact;
      if (apart <= most) {
        exact = found[i][n];
      } else {
        difference += apart * apart;  // of a NaN, one
      }
    }
  }
  set_weights(weights);
  return std::sqrt(difference / norm);
}

}  // namespace syslab::train
