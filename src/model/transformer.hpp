// The transformer language model of the hand-out's basics package: forward and hand-written backward.
//
//   tokens ─▶ embedding ─▶ (norm ─▶ attention ─▶ +, norm ─▶ feed-forward ─▶ +) × layers ─▶ norm ─▶ LM head ─▶ logits
//
//   Transformer model(find_model("small"), {.precision = Precision::bf16_fused}, stream);
//   initialise(model.parameters(), seed);
//   Activations kept = model.forward(tokens);
//   model.loss_and_gradient(kept, targets, {});
//   model.backward(std::move(kept), {});       // gradients are in model.parameters()
//
// Everything is queued on one stream, nothing waits. Pre-norm blocks, no biases, no dropout, LM head untied.
// Source: CS336 assignment 1 basics (cs336_basics.model), as CS336 assignment 2 uses it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/activations.hpp"
#include "model/arena.hpp"
#include "model/pass_context.hpp"
#include "model/recompute.hpp"

namespace syslab::model {

enum class Keep { nothing, activations };  // of a forward pass

struct BackwardOptions {
  bool add = false;      // to the gradients that are there: a later part of an accumulated step
  GradFinal grad_final;  // called for the last part; may be empty
};

struct TransformerOptions {
  Precision precision = Precision::fp32;
  Variant variant = Variant::fused;
  std::string attention;  // a rung by name; empty: the variant's own choice
  // Equal inputs give equal bits, also in attention's backward pass: for certificates and for who resumes to the bit.
  bool deterministic = false;
  Recompute recompute;     // which activations are made again in the backward pass instead of being kept
  bool keeps_all = false;  // Kernels::keeps_all, in every variant; else in `eager` alone. The bits are the same
  // A plane of whole fp32 weights even if they could be in halves (splits_weights()): for code that distributes pieces
  // of that plane.
  bool whole_weights = false;
  bool with_gradients = true, with_moments = true;
  // Who lends weights and takes gradients in place of the model's own arena, which then has a layout and no memory.
  // Outlives the model.
  const ParameterSource* source = nullptr;
  // Puts other rungs in the place of those that were chosen: how tests plant a wrong one, which a check must find.
  std::function<void(Kernels&)> plant;
};

inline AttentionWish attention_wish(const TransformerOptions& options, std::int64_t batch, std::int64_t seq) {
  return {.rung = options.attention,
          .want = options.deterministic ? attention::Want::deterministic : attention::Want::fastest,
          .batch = batch,
          .seq = seq};
}

inline bool keeps_all(const TransformerOptions& options) {
  return options.keeps_all || options.variant == Variant::eager;
}

// Whether the model's arena holds its weights in halves (core/split_float.hpp): in bf16_fused, except for `eager`, and
// only with moments, since without them the weights are updated elsewhere or not at all. Under autocast the embedding
// is looked up in fp32.
inline bool splits_weights(const TransformerOptions& options) {
  return options.precision == Precision::bf16_fused && options.variant != Variant::eager && options.with_moments &&
         !options.whole_weights && options.source == nullptr;
}

class Transformer {
 public:
  // Takes memory for parameters, which hold anything until they are initialised or loaded. Error(usage) for an
  // impossible configuration or a precision that the device has no kernels for; Error(oom).
  Transformer(const ModelConfig& config, const TransformerOptions& options, device::Stream stream);

  const ModelConfig& config() const { return config_; }
  const TransformerOptions& options() const { return options_; }
  const DTypes& dtypes() const { return dtypes_; }
  // Attention's rung is that of the last pass: which is the fastest depends on the number and length of its sequences.
  // Before the first pass: of one sequence of the whole context.
  const Kernels& kernels() const { return kernels_; }
  device::Stream stream() const { return stream_; }
  ParameterArena& parameters() { return parameters_; }
  const ParameterArena& parameters() const { return parameters_; }

  // Copies the weights to the dtype that products read; does nothing if that is their own. Call it after weights were
  // changed by anything but the optimizer's kernel, which writes the copy itself unless each tensor is updated alone
  // (Variant::eager: the next step's forward pass begins with this). If weights are split, it joins the gains of norms,
  // also after the optimizer's kernel.
  void refresh_weights_copy();

  // Logits, and what backward needs (or nothing of it). Error(usage) when `seq` is beyond the context; ids must be in
  // the vocabulary (train/batches.hpp checks them where they come in): another gives NaN.
  Activations forward(const Tokens& tokens, Keep keep = Keep::activations) const;

  // The mean cross-entropy over all positions, in `activations.loss`. With its gradient: that of scale·loss takes the
  // place of the logits (`scale`: 1 element on the device; no memory: 1). `targets` as many as tokens.
  void loss(Activations& activations, const std::int64_t* targets) const;
  void loss_and_gradient(Activations& activations, const std::int64_t* targets, const ConstTensorView& scale) const;

  // From the logits' gradient to every parameter's.
  void backward(Activations activations, const BackwardOptions& options);

  // Half-blocks (model/recompute.hpp) that passes of this model have run forward so far. What a graph replays was
  // counted when it was recorded.
  std::int64_t half_blocks_forward() const { return half_blocks_forward_; }

  // Called for every tensor of later passes, and again for one that is recomputed; may be empty.
  void observe(Observer observer) { observer_ = std::move(observer); }

 private:
  Kernels choose_kernels(std::int64_t batch, std::int64_t seq, device::Stream stream) const;
  PassContext pass(const Tokens& tokens) const;
  const ParameterSource& source() const {
    return options_.source != nullptr ? *options_.source : static_cast<const ParameterSource&>(parameters_);
  }
  void prepare_loss(Activations& activations) const;
  void forward_half(const PassContext& pass, std::int64_t half, ResidualStream& stream,
                    std::vector<Activations::Block>& blocks, Output output) const;
  void recompute(const PassContext& pass, Segment segment, std::vector<Activations::Block>& blocks) const;
  void backward_half(const PassContext& pass, std::int64_t half, Activations::Block& block, Tensor& dresidual) const;

  ModelConfig config_;
  TransformerOptions options_;
  DTypes dtypes_;
  mutable std::int64_t chosen_batch_ = 1, chosen_seq_;  // sizes of the passes that
  mutable Kernels kernels_;                             // these are for
  device::Stream stream_;
  ParameterArena parameters_;
  Tensor cos_, sin_;  // (context, head_dim / 2)
  Observer observer_;
  mutable std::int64_t half_blocks_forward_ = 0;
};

// Watches a model's passes while it lives; also an exception ends it.
class Watching {
 public:
  Watching(Transformer& model, Observer observer) : model_(model) { model_.observe(std::move(observer)); }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;
  ~Watching() { model_.observe({}); }

 private:
  Transformer& model_;
};

}  // namespace syslab::model
