// Fully sharded training as data that a lab can run, check and time: what trials/measured_data_parallel.hpp is for
// replicas. The same tokens and weights of the same seed, so that losses can be held against each other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "contract/measured_step.hpp"
#include "device/stream.hpp"
#include "parallel/fsdp/step.hpp"
#include "train/measured_step.hpp"

namespace syslab::parallel {

struct FsdpWorkloadOptions {
  train::WorkloadOptions step;  // of one rank: `batch` rows each
  FsdpStepOptions sharding;     // but for the optimizer, which is the step's
};

class FsdpWorkload : public StepWorkload {
 public:
  // Collective. `ranks` and `compute` outlive this.
  FsdpWorkload(const FsdpWorkloadOptions& options, comm::Communicator& ranks, device::Stream compute,
               std::uint64_t seed);

  FsdpStep& step() { return step_; }
  std::string unit_name(int unit) const;  // of its first weight: "layers.3.attn.q_proj.weight"

  void refresh() override;  // another batch
  void run() override;      // a whole step
  void forward() override;  // its phases, in this order
  void backward() override { step_.backward(0); }
  void update() override { step_.update(); }

  double loss() override { return step_.result().loss; }  // collective; waits

 private:
  FsdpWorkloadOptions options_;
  device::OwnedStream communication_;  // goes after the step, which waits for it
  FsdpStep step_;
  train::RandomBatches source_;
  train::Batch drawn_;
  std::uint64_t number_ = 0;
};

struct MeasuredFsdp {
  device::Kind device = device::Kind::cpu;
  std::optional<std::string> refusal;  // why it cannot be run here
  // The certificate over these ranks (kCertificate, or Error(check)), then the model of this rank against the
  // reference; where it makes activations again, against itself with all kept.
  std::function<std::vector<StepCheck>(comm::Communicator&, device::Stream)> check;
  std::function<std::shared_ptr<FsdpWorkload>(comm::Communicator&, device::Stream)> start;
  double tokens = 0, parameters = 0;  // of one rank; of the model
  std::int64_t weight_width = 4;      // bytes of one as it is kept, and of its gradient and each moment
};

MeasuredFsdp measured_fsdp(const FsdpWorkloadOptions& options, const train::Rung& rung, std::uint64_t seed);

}  // namespace syslab::parallel
