// Lets a caller watch a step of many ranks while it is queued. Without an observer, nothing is called.
#pragma once

#include <span>

#include "device/event.hpp"

namespace syslab::parallel {

// What one stream waits for that is queued on the other.
enum class Wait {
  // Communication for computing:
  step_begun,
  gradients_written,
  replicated_gradients_written,
  weights_updated,
  weights_read,  // before others are gathered into their slot
  norm_computed,
  // Computing for communication:
  gradient_slot_sent,  // before other gradients are written into it
  gradients_reduced,   // all of a step; where slices are updated in turn, they are updated as well
  weights_gathered,
  norms_gathered,
};

class StepObserver {
 public:
  virtual ~StepObserver() = default;
  // Whether a stream is to wait. `number`: of the bucket, bracket or unit; 0 where there is one of the kind.
  virtual bool waits(Wait, int /*number*/) { return true; }
  // Called by certificates: before work is queued, and after a layer has added its part to a piece's gradient.
  virtual void before_work(device::Stream) {}
  virtual void contribution(int /*layer*/, int /*piece*/, std::span<double> /*gradient*/) {}
};

inline void wait_for(StepObserver* observer, Wait wait, const device::Event& event, device::Stream later, int n = 0) {
  if (observer == nullptr || observer->waits(wait, n)) event.before(later);
}

}  // namespace syslab::parallel
