// The transformer's training step with weights, gradients and moments sharded among the ranks.
//
//   FsdpStep step(config, {.precision = Precision::bf16_fused}, ranks, fsdp_step_options(Granularity::block), rows,
//                 seq, compute, communication);
//   step.initialise(seed);
//   step.load(0, ids, targets);                 // this rank's rows
//   step.run(learning_rate);
//   step.result().loss;                         // over the rows of all ranks; waits
//
// The model requests its weights while it runs (model/parameter_source.hpp) and gets them from slots; there is no
// arena. As in DataParallelStep, the loss gradient is scaled by this rank's share of the rows, and sums are
// communicated.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "parallel/fsdp/fsdp.hpp"
#include "parallel/owned_update.hpp"
#include "parallel/shard_norm.hpp"
#include "parallel/step_ranks.hpp"
#include "train/step.hpp"

namespace syslab::parallel {

struct FsdpStepOptions {
  train::OptimizerOptions optimizer;
  Granularity granularity = Granularity::block;
  FsdpOptions fsdp;
  int parts = 1;  // batches a step; each is scattered, and what comes of it added up in the weights' dtype
};

// `layer` with two slots for gradients; `block` with one for each of a block's products, so that none waits for the one
// before it.
FsdpStepOptions fsdp_step_options(Granularity granularity);

// Weights in slots and gradients to slots, as a model asks for them.
class LentShards final : public model::ParameterSource {
 public:
  LentShards(Fsdp& fsdp, const TransformerParts& parts) : fsdp_(fsdp), parts_(parts) {}
  ConstTensorView weights(int parameter) const override;
  void done(int parameter) const override;
  model::GradientPlace gradient(int parameter, bool add) const override;
  void gradient_final(int parameter) const;  // of each parameter, as model::GradFinal tells
  void begin_part(bool add) { add_ = add; }

 private:
  Fsdp& fsdp_;
  const TransformerParts& parts_;
  bool add_ = false;  // of what is replicated
};

// Bytes of a model's state on a rank: memory needed at all times, with padding, and a step's additional memory,
// allocated beforehand.
struct FsdpBytes {
  std::size_t weights = 0, gradients = 0, moments = 0;
  std::int64_t padding = 0;  // of the three: what lies between tensors so that they are aligned
  std::int64_t slots = 0;

  std::size_t state() const { return weights + gradients + moments; }
};

class FsdpStep {
 public:
  // Steps on `batch` sequences of `seq` tokens on this rank. Collective: compares models and options. `ranks` and both
  // streams outlive it. Weights are zero until they are initialised or written. Error(usage) as of model::Transformer,
  // Fsdp and train::TrainingStep, for Variant::graph, and for fp64 with clipping.
  FsdpStep(const model::ModelConfig& config, const model::TransformerOptions& model, comm::Communicator& ranks,
           const FsdpStepOptions& options, std::int64_t batch, std::int64_t seq, device::Stream compute,
           device::Stream communication);
  FsdpStep(const FsdpStep&) = delete;
  FsdpStep& operator=(const FsdpStep&) = delete;
  ~FsdpStep();  // waits for both streams

  model::Transformer& model() { return model_; }
  Fsdp& fsdp() { return fsdp_; }
  const Fsdp& fsdp() const { return fsdp_; }
  const OwnedUpdate& moments() const { return moments_; }  // of all shards
  train::TrainingStep& training() { return step_; }
  double share() const { return share_; }
  FsdpBytes bytes() const;

  // The weights of model::initialise(), of which each rank keeps its part.
  void initialise(std::uint64_t seed);
  // Those of train::draw_weights(), each rank's part drawn where it lies, of the same numbers.
  void draw_weights(std::uint64_t seed);
  // A parameter, whole, row-major, of any floating dtype; each rank keeps its part.
  void write(int parameter, std::int64_t first, const ConstTensorView& values);
  // And whole again, on every rank. Collective; waits; not within a step.
  std::vector<double> gather_now(int parameter);

  // As in train::TrainingStep. An exception from begin() on ends the communication of the other ranks, with its
  // message.
  void load(int part, std::span<const std::int64_t> ids, std::span<const std::int64_t> targets);
  void run(double learning_rate, double loss_scale = 1.0);
  void begin(double learning_rate, double loss_scale = 1.0);
  void forward(int part);
  void backward(int part);
  void update();

  // For tests: logits alone, of this rank's tokens, with weights gathered for it. Collective.
  model::Activations evaluate(const model::Tokens& tokens);

  // Of the last step, the same on all ranks. Collective; waits for it.
  DataParallelResult result();

  // Checks at the end of a run: replicated tensors are bitwise equal on all ranks, and each rank communicated as many
  // bytes as the plan says. Collective; waits. Error(check).
  void check();

 private:
  void take_update(train::Optimizer& optimizer, const ConstTensorView& losses);
  train::StepOptions step_options(const FsdpStepOptions& options);
  static model::TransformerOptions sourced(model::TransformerOptions options, const model::ParameterSource& source);

  comm::Communicator& ranks_;
  device::Stream compute_, communication_;
  FsdpStepOptions options_;
  TransformerParts parts_;
  Fsdp fsdp_;
  LentShards source_;
  model::Transformer model_;
  OwnedUpdate moments_;
  std::optional<ShardNorm> norm_;
  std::vector<double> shares_;  // by rank
  double share_;
  train::TrainingStep step_;
};

}  // namespace syslab::parallel
