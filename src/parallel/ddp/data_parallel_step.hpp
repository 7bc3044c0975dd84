// A training step of many ranks: each computes on its own part of the batch, all take the same update.
//
//   DataParallelStep step(model, ranks, {.sync = {.strategy = Strategy::bucketed}}, rows, seq, communication);
//   step.load(0, ids, targets);                 // this rank's rows
//   step.run(learning_rate);
//   step.result().loss;                         // over the rows of all ranks; waits
//
// The loss gradient is scaled by this rank's share of the rows before the backward pass, and sums are communicated:
// this gives the mean over the whole batch, however unevenly it is divided, without an extra kernel.
//
// The optimizer's state may be sharded among the ranks: whole parameters with an owner each (Sharding::optimizer, the
// model made without moments), or flat ranges (zero1, zero2: parallel/zero/parameters.hpp, which the model has as its
// source).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "parallel/ddp/gradient_sync.hpp"
#include "parallel/owned_update.hpp"
#include "parallel/shared_losses.hpp"
#include "parallel/step_ranks.hpp"
#include "parallel/zero/parameter_owners.hpp"
#include "parallel/zero/parameters.hpp"
#include "train/step.hpp"

namespace syslab::parallel {

struct DataParallelOptions {
  train::OptimizerOptions optimizer;
  SyncOptions sync;
  int parts = 1;                       // batches per step; their gradients are summed before communication
  Sharding sharding = Sharding::none;  // or optimizer
  ZeroParameters* zero = nullptr;      // zero1 and zero2, which then has `sync` and `parts`; outlives the step
};

// Bytes of a model's state on a rank; gradients include their communication buffers.
struct HeldBytes {
  std::size_t weights = 0, copy = 0, gradients = 0, moments = 0;

  std::size_t total() const { return weights + copy + gradients + moments; }
};

class DataParallelStep {
 public:
  // Steps on `batch` sequences of `seq` tokens on this rank; other ranks may have more or fewer. Collective: compares
  // the models, copies rank 0's weights to all ranks and waits. `model`, its stream, `ranks` and the stream
  // `communication` must outlive it. Error(usage) for Variant::graph with more than one rank, and if ranks differ in
  // anything but their rows.
  DataParallelStep(model::Transformer& model, comm::Communicator& ranks, const DataParallelOptions& options,
                   std::int64_t batch, std::int64_t seq, device::Stream communication);
  DataParallelStep(const DataParallelStep&) = delete;
  DataParallelStep& operator=(const DataParallelStep&) = delete;
  // As GradientSync's; of zero1 and zero2, too.
  ~DataParallelStep();

  GradientSync& sync() { return *sync_; }                          // of zero1 and zero2: there is none
  const ParameterOwners* owners() const { return owners_.get(); }  // of Sharding::optimizer
  HeldBytes held() const;
  train::TrainingStep& training() { return step_; }
  double share() const { return share_; }  // of the rows of all ranks

  // As in train::TrainingStep. An exception from begin() on ends the communication of the other ranks, with its
  // message.
  void load(int part, std::span<const std::int64_t> ids, std::span<const std::int64_t> targets);
  void run(double learning_rate, double loss_scale = 1.0);
  void begin(double learning_rate, double loss_scale = 1.0);
  void forward(int part);
  void backward(int part);
  void update();

  // Of the last step, the same on all ranks. Collective; waits for it.
  DataParallelResult result();

  // Checks at the end of a run: all ranks have bitwise equal weights, reduced as many bytes as the schedule says, and
  // exchanged as many as the formula says; for zero1 and zero2, which gather all weights for it, that copies equal the
  // rounded weights. Collective; waits. Error(check).
  void check();

 private:
  train::StepOptions step_options(const DataParallelOptions& options);
  void divide(device::Stream communication);
  void update_owned(train::Optimizer& optimizer, const ConstTensorView& losses);
  ConstTensorView of_all_ranks(const ConstTensorView& losses);
  std::vector<TensorView> weights() const;  // the planes that hold them

  model::Transformer& model_;
  comm::Communicator& ranks_;
  std::vector<int> piece_of_parameter_;
  ZeroParameters* zero_;
  device::Stream communication_;
  std::unique_ptr<GradientSync> sync_;
  std::unique_ptr<ParameterOwners> owners_;
  std::unique_ptr<OwnedUpdate> owned_;
  std::unique_ptr<SharedLosses> losses_;  // if replicas can skip steps, from the first step on
  std::vector<double> shares_;            // by rank
  double share_;
  train::TrainingStep step_;
};

}  // namespace syslab::parallel
