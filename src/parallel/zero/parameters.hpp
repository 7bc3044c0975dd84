// A transformer's parameters under ZeRO's first two stages: what lends a model its weights as they arrive, takes its
// gradients to where they are scattered from, and updates this rank's slices with moments that it alone has.
//
//   ZeroParameters zero(ranks, config, model_options, {.sharding = Sharding::zero2}, compute, communication);
//   model_options.source = &zero;
//   Transformer model(config, model_options, compute);
//   DataParallelStep step(model, ranks, {.zero = &zero, …}, …);
//
// Weights are waited for a bracket at a time, as the forward pass comes to them. The update writes fp32 weights of this
// rank's slices. In full precision all ranks get those. Where products read a copy in half precision, the update writes
// that, too, and it is what travels; of what is read in fp32 all the same, norms and embedding, the weights come.
// Whoever wants all weights asks for them: gather_weights().
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "model/transformer.hpp"
#include "parallel/owned_update.hpp"
#include "parallel/shard_norm.hpp"
#include "parallel/strategy.hpp"
#include "parallel/zero/sync.hpp"
#include "train/optimizer.hpp"

namespace syslab::parallel {

struct ZeroModelOptions {
  Sharding sharding = Sharding::zero1;  // or zero2
  SyncOptions sync;                     // for its buckets, in which brackets travel whole, and `wire`
  int parts = 1;                        // as DataParallelOptions::parts
  int slots = 2;                        // as ZeroOptions'
  bool poison = false;
  bool in_turn = false;  // slices are updated as soon as their gradients are there, under the backward pass
};

class ZeroParameters final : public model::ParameterSource {
 public:
  // Collective. Takes all memory of weights, gradients and moments; `model` decides on dtypes and kernels. Weights are
  // zero until arena() is written. `ranks` and both streams outlive this. Error(usage), Error(oom).
  ZeroParameters(comm::Communicator& ranks, const model::ModelConfig& config, const model::TransformerOptions& model,
                 const ZeroModelOptions& options, device::Stream compute, device::Stream communication);

  // Weights, their copy, and zero1's gradients; no moments. Who writes weights calls refresh_copy(). Where there is a
  // copy, weights of other ranks' slices are those of before the first step, or of the last gather_weights().
  model::ParameterArena& arena() { return arena_; }
  const model::ParameterArena& arena() const { return arena_; }
  // Of all weights: Error(usage) where this rank has not got them.
  void refresh_copy();
  // What is queued on `compute` from now on finds all weights. Collective; nothing where they have come anyway.
  void gather_weights(device::Stream compute) { sync_->gather_weights(compute); }
  // That the copy is what all weights are rounded to, bit for bit. Collective; waits. Error(check) on every rank.
  void check_copy(device::Stream compute) { sync_->check_copy(compute); }
  const ZeroSync& sync() const { return *sync_; }
  const ZeroModelOptions& options() const { return options_; }
  const OwnedUpdate& moments() const { return *moments_; }  // a stretch a bucket
  const model::Kernels& kernels() const { return kernels_; }

  // Of a pass.
  ConstTensorView weights(int parameter) const override;
  void done(int) const override {}
  model::GradientPlace gradient(int parameter, bool add) const override;
  void grad_final(int parameter, device::Stream compute);

  // Call before the first step of `in_turn`: the optimizer that provides the updates' scalars. Error(usage) for one
  // that reads all gradients before any update, to clip or to skip. `optimizer` must outlive the last step.
  void update_by(const train::Optimizer& optimizer);
  // Norm and clipping where they are asked for, the update of this rank's slices, and the way of their new weights to
  // all: what train::StepOptions::update wants.
  void update(train::Optimizer& optimizer, const ConstTensorView& losses, device::Stream compute);
  // What is queued on `compute` from now on finds all that passes read: for who does so outside of a pass.
  void all_needed(device::Stream compute) { sync_->all_needed(compute); }
  // No update that is queued reads the optimizer's numbers behind this, also where a step was left by an exception.
  void leave() noexcept { sync_->leave(); }

 private:
  void begin_pass(device::Stream compute) const;

  comm::Communicator& ranks_;
  ZeroModelOptions options_;
  model::Kernels kernels_;
  device::Stream compute_;
  model::ParameterArena arena_;
  std::vector<Piece> tensors_;  // each in the arena
  std::vector<int> piece_of_;   // by parameter: its bracket's
  std::unique_ptr<OwnedUpdate> moments_;
  std::unique_ptr<ShardNorm> norm_;
  std::unique_ptr<ZeroSync> sync_;  // ends before what it updates with, and waits for it
  const train::Optimizer* in_turn_ = nullptr;
  mutable bool open_ = false;  // a backward pass that communicates
  int part_ = 0;               // of the step, zero2
};

// How gradients travel between `ranks`, by `sync.wire`; nothing: as they are, or not at all. A product writes the
// gradient of what it read rounded where it computes in that dtype, and no part of a step before has left anything to
// add to.
std::optional<RoundedGradients> rounded_gradients(const model::ParameterLayout& layout, const model::DTypes& dtypes,
                                                  const ZeroModelOptions& options, int ranks);

// The brackets of a layout as pieces (model/parameters.hpp), each by the name of its first tensor.
GradientPieces bracket_pieces(const model::ParameterLayout& layout, DType dtype);

}  // namespace syslab::parallel
