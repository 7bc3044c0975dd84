// Training steps of the float64 reference that stay next to those of another precision, and how far rounding may carry
// the other's loss, gradient norm and weights from them.
//
//   ReferenceSteps exact(config, {.precision = Precision::fp32}, optimizer, rows, seq);
//   exact.set_weights(weights);
//   exact.take(ids, targets);                   // the other takes the same step, in any way
//   exact.loss(); exact.norm();                 // each with its bound
//   exact.follow(weights_of_the_other);         // the next step begins with these
//
// Two runs of AdamW in fp32 part for good: a gradient that is no larger than its own rounding error takes a whole step
// in a random direction. No bound on their distance after many steps follows from the roundings. Each step from equal
// weights has bounds:
//
//   ρ        of an element of a gradient           train/rounding_of_gradients.hpp
//   norm     √Σρ² by the triangle inequality, and kNormRoundings·u·‖g‖ of the norm itself (parallel/shard_norm.hpp)
//   weight   what ρ makes of a step of AdamW       train/reach_of_rounding.hpp
//            a relative error δ of the factor that clips, in any step: 2·lr·R·δ, as m̂ and √v̂ are each off by δ at most
//            the arithmetic of fp32 (or fp64) in t steps: lr·R·(2t + 10)·u for moments, root, quotient and product,
//            3u·|w| for the decay and the two subtractions
//   loss     the mean over rows of lse − z. A row's slope by its logits is p − y, ‖p − y‖ ≤ √2; its logits are rounded
//            as a gradient is, but on the way forward alone: ‖Δz‖ ≤ r·‖z‖, r = λ·√(nk)·u. Rows round independently:
//            √2·r·‖Z‖/rows of all of them. lse − z rounds by 16u·(1 + m + ln V) (model/against_reference.hpp), in root
//            mean square of rows; the sum over rows by rows·u·loss
//
// λ = 4, n roundings of a pass and k terms of a sum are those of train/rounding_of_gradients.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/transformer.hpp"
#include "train/reach_of_rounding.hpp"
#include "train/rounding_of_gradients.hpp"
#include "train/step.hpp"

namespace syslab::train {

// A number, and how far the other's may be from it.
struct Bounded {
  double value = 0, bound = 0;
};

class ReferenceSteps {
 public:
  // `other`: whose roundings are bounded. Its learning rate is that of `optimizer.adamw`. Batches of `rows` sequences
  // of `seq` tokens.
  ReferenceSteps(const model::ModelConfig& config, const model::TransformerOptions& other,
                 const OptimizerOptions& optimizer, std::int64_t rows, std::int64_t seq);
  ReferenceSteps(const ReferenceSteps&) = delete;
  ReferenceSteps& operator=(const ReferenceSteps&) = delete;

  model::Transformer& model() { return model_; }
  void set_weights(const ByParameter& weights);

  void take(std::span<const std::int64_t> ids, std::span<const std::int64_t> targets);

  // Of the last step.
  const Bounded& loss() const { return loss_; }
  const Bounded& norm() const { return norm_; }  // of the gradients before they are clipped

  // ‖found − exact‖ / ‖exact‖ over the weights that are further off than rounding reaches: 0 if none is. The others are
  // as right as the reference's, which goes on from there. `clip_error`: of the factor that clipped the other's last
  // gradients, relative.
  double follow(const ByParameter& found, double clip_error = 0);

 private:
  ByParameter all(model::Plane plane) const;
  const model::ParameterLayout& layout() const { return model_.parameters().layout(); }
  void look_before(std::span<const std::int64_t> targets);
  double rounding_of_loss() const;
  double clip() const;

  ExactPass exact_;  // before the model, which writes into it
  model::Transformer model_;
  TrainingStep step_;
  model::TransformerOptions other_;
  adamw::Options adamw_;
  std::optional<double> max_norm_;
  std::vector<std::vector<ReachOfRounding>> reaches_;  // by parameter and row
  double logits_ = 0, largest_logit_ = 0;              // ‖Z‖, and the largest of any
  double clip_error_ = 0;                              // the largest so far
  int steps_ = 0;
  Bounded loss_, norm_;
};

}  // namespace syslab::train
