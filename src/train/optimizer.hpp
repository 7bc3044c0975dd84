// AdamW over a model's arena, and the gradient's norm before it. Numbers that change from step to step are in device
// memory, so that a step recorded as a graph can be replayed with the next one's numbers.
#pragma once

#include <cstdint>
#include <optional>

#include "device/event.hpp"
#include "model/transformer.hpp"
#include "ops/adamw/adamw.hpp"

namespace syslab::train {

struct OptimizerOptions {
  adamw::Options adamw;
  std::optional<double> max_norm;  // gradients are scaled down to this global norm
  bool skip_non_finite = false;    // a step with an infinity or a NaN in gradients or loss changes nothing
};

// The hand-outs' defaults, with decay after the update (2025) or before it (2026).
adamw::Options adamw_options_of(const model::ModelConfig& config);

class Optimizer {
 public:
  // `model` must outlive it, and have gradients and moments by the time that queue() is called.
  Optimizer(model::Transformer& model, const OptimizerOptions& options);

  const OptimizerOptions& options() const { return options_; }
  std::int64_t steps() const { return steps_; }           // begun
  void set_steps(std::int64_t steps) { steps_ = steps; }  // of a run that is resumed

  // Brings the next step's numbers to the device, in the stream's order, before it; never part of a graph.
  // `loss_scale`: what the loss's gradient is multiplied by (1 over the parts of an accumulated step is part of it,
  // and the optimizer undoes `unscale` of it).
  void begin_step(double learning_rate, double loss_scale = 1.0, double unscale = 1.0);
  ConstTensorView loss_scale() const;  // (1), for Transformer::loss_and_gradient

  // Queues the norm, where anybody needs it, and the update. `losses`: what must be finite besides the gradients for a
  // step that skips (an infinite loss may have finite gradients); no memory: nothing.
  void queue(const ConstTensorView& losses = {});

  // For who takes the step otherwise, because other ranks have gradients or moments of it (StepOptions::update): what
  // it reads, and what it leaves for the step's result. All in memory of the model's stream.
  const adamw::Scalars* scalars() const { return static_cast<const adamw::Scalars*>(numbers_.data()); }
  ConstTensorView unscale() const;  // (1)
  struct NormPlaces {
    TensorView norm, factor;  // (1)
    std::int64_t* non_finite;
  };
  NormPlaces norm_places() { return {norm_, factor_, static_cast<std::int64_t*>(non_finite_.data())}; }
  // The first half of queue(), over all of the model's arena: the gradients' norm, if it is needed. Returns the
  // factor by which an update multiplies gradients, or null if there is none or it was applied already.
  const float* queue_norm(const ConstTensorView& losses);
  // The number that an update reads before it changes anything; null: it does not skip.
  const std::int64_t* skips_on() const { return options_.skip_non_finite ? non_finite() : nullptr; }

  // Of the last queued step; synchronise before reading.
  bool has_norm() const { return options_.max_norm || options_.skip_non_finite; }
  ConstTensorView norm() const { return norm_; }  // (1)
  const std::int64_t* non_finite() const { return static_cast<const std::int64_t*>(non_finite_.data()); }

 private:
  // What a step reads from device memory, in that layout.
  struct Numbers {
    adamw::Scalars scalars;
    double loss_scale_f64, unscale_f64;
    float loss_scale_f32, unscale_f32;
  };
  ConstTensorView number(std::size_t f64_offset, std::size_t f32_offset) const;
  void update(const TensorView& p, const TensorView& g, const TensorView& m, const TensorView& v,
              const TensorView& copy, const float* clip, const TensorView& low = {});

  model::Transformer& model_;
  OptimizerOptions options_;
  std::int64_t steps_ = 0;
  model::Tensor norm_, factor_;
  device::Buffer non_finite_, numbers_, staged_;
  device::Event copied_;
};

}  // namespace syslab::train
