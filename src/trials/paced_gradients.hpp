// Gradients without a model: many equal tensors that become final one after the other at a given pace, and are reduced
// in buckets meanwhile. What a closed formula for buckets takes for granted (planning/uniform_model.hpp) is so here,
// and can be held against measurement.
//
//   PacedGradients step(ranks, {.tensors = 1000, .tensor_bytes = 10'240, .bucket_bytes = 1 << 20}, law, communication);
//   step.refresh();
//   step.run(compute);                        // the host waits where a device would compute
//   step.error(), step.sync().timeline().exposed(), step.forecast();
//
// The host of a CPU rank stands for a device that computes by itself: it sleeps until the next tensor's time has come,
// so that the processors are free for communication. Times are absolute, so that waking late delays a tensor and not
// those behind it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/communicator.hpp"
#include "device/buffer.hpp"
#include "parallel/ddp/gradient_sync.hpp"
#include "planning/transfer_curve.hpp"
#include "planning/uniform_model.hpp"

namespace syslab::parallel {

struct PacedOptions {
  std::int64_t tensors = 1000;
  std::int64_t tensor_bytes = 10'240;   // of fp32
  std::int64_t bucket_bytes = 1 << 20;  // the limit: whole tensors, one at least
  double pace = 1;                      // computing a tensor takes so many times as long as its bytes on the wire
};

// Error(usage) for sizes below an fp32 or above 2^40 bytes in all, and for a pace that is not positive.
void require_gradients(const PacedOptions& options);

class PacedGradients {
 public:
  // `law`: of all-reduces on these ranks, the same on all. `ranks` and the streams outlive it. Error(usage) as
  // require_gradients() has it.
  PacedGradients(comm::Communicator& ranks, const PacedOptions& options, const AffineTransfer& law,
                 device::Stream communication);

  void refresh();  // new contents
  void run(device::Stream compute);

  GradientSync& sync() { return *sync_; }
  // What the law says of equal buckets: their mean size is that of this schedule.
  UniformStep uniform() const;
  Seconds forecast() const { return exposed(uniform(), bucket_bytes()); }
  double bucket_bytes() const;  // mean of the schedule

  // Largest |found − expected| over all elements, after one run() behind a refresh(): 0, for contents are whole
  // numbers.
  double error() const;
  std::string what() const;

 private:
  std::int64_t elements() const;  // of all tensors

  comm::Communicator& ranks_;
  PacedOptions options_;
  AffineTransfer law_;
  device::Buffer arena_;
  std::optional<GradientSync> sync_;
  std::uint64_t sample_ = 0;
};

}  // namespace syslab::parallel
