// Data-parallel training as data that a lab can run, check and time: what train/measured_step.hpp is for one rank.
//
//   const MeasuredDataParallel measured = measured_data_parallel({.step = workload, .sync = sync}, rung, seed);
//   measured.check(ranks, compute);                       // Error(check), or how far the model is from the reference
//   const auto run = measured.start(ranks, compute);
//   run->refresh(), run->run(), run->loss(); run->step().sync().timeline(); run->step().check();
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "contract/measured_step.hpp"
#include "device/stream.hpp"
#include "parallel/ddp/data_parallel_step.hpp"
#include "planning/planner.hpp"
#include "train/measured_step.hpp"

namespace syslab::parallel {

struct DataParallelWorkloadOptions {
  train::WorkloadOptions step;  // of one rank: `batch` rows each
  SyncOptions sync;             // `planned` without a schedule: one is measured and computed before the first step
  Sharding sharding = Sharding::none;  // up to zero2
  bool in_turn = false;                // of zero1 and zero2: ZeroModelOptions'
  bool communicates = true;            // false: the same step without its communication, each rank by itself: the ideal
};

// A stream for communication concurrent with computation: a queue on the CPU, a high-priority stream on a GPU, since
// the optimizer waits for it.
device::OwnedStream communication_stream(device::Place place);

class DataParallelWorkload : public StepWorkload {
 public:
  // Collective. Tokens and weights come from `seed`, tokens of each rank its own; `ranks` and `compute` outlive this.
  DataParallelWorkload(const DataParallelWorkloadOptions& options, comm::Communicator& ranks, device::Stream compute,
                       std::uint64_t seed);

  DataParallelStep& step() { return *step_; }
  model::Transformer& model() { return *model_; }
  const ZeroParameters* zero() const { return zero_.get(); }  // of zero1 and zero2
  // Of `planned`, made before the first step: the schedule, what it should expose, and what it can expose at least.
  const std::optional<Forecast>& forecast() const { return forecast_; }

  void refresh() override;  // another batch
  void run() override;      // a whole step
  void forward() override;  // its phases, in this order
  void backward() override { step_->backward(0); }
  void update() override { step_->update(); }

  double loss() override { return step_->result().loss; }  // collective; waits

 private:
  DataParallelWorkloadOptions options_;
  std::vector<std::unique_ptr<comm::Communicator>> alone_;  // where nothing is to be communicated
  device::OwnedStream communication_;                       // goes after all that queues work there, and waits for it
  std::unique_ptr<ZeroParameters> zero_;
  std::optional<model::Transformer> model_;
  std::optional<Forecast> forecast_;
  std::optional<DataParallelStep> step_;
  train::RandomBatches source_;
  train::Batch drawn_;
  std::uint64_t number_ = 0;
};

struct MeasuredDataParallel {
  device::Kind device = device::Kind::cpu;
  std::optional<std::string> refusal;  // why it cannot be run here
  // The certificate of the strategy over these ranks (kCertificate; Error(check) where it does not hold), then the
  // model of this rank against the reference.
  std::function<std::vector<StepCheck>(comm::Communicator&, device::Stream)> check;
  std::function<std::shared_ptr<DataParallelWorkload>(comm::Communicator&, device::Stream)> start;
  double flops = 0, tokens = 0, parameters = 0;  // of one rank
  std::int64_t weight_width = 4;                 // bytes of one as it is kept, and of its gradient and each moment
  double gradient_bytes = 0;                     // on the wire, without padding
  double weight_bytes = 0;                       // likewise, of new weights that ranks give one another
};

MeasuredDataParallel measured_data_parallel(const DataParallelWorkloadOptions& options, const train::Rung& rung,
                                            std::uint64_t seed);

}  // namespace syslab::parallel
