// The losses of all ranks, to skip a step if one is not finite: an infinite loss may have finite gradients, and then
// the shared sum of gradients does not reveal it to the other ranks.
//
//   optimizer.queue(shared.sum(losses, compute));
#pragma once

#include "comm/communicator.hpp"
#include "device/buffer.hpp"
#include "device/event.hpp"
#include "device/stream.hpp"

namespace syslab::parallel {

class SharedLosses {
 public:
  // Of as many losses on every rank. All memory is made here. `ranks` and both streams must outlive this; the
  // destructor waits for `communication` if it is a CPU queue.
  SharedLosses(comm::Communicator& ranks, const ConstTensorView& losses, device::Stream compute,
               device::Stream communication);

  // Collective. The sum over ranks of each loss: infinite or NaN where one of them is. Behind what is queued on
  // `compute`, before what is queued there from now on; until the next call.
  ConstTensorView sum(const ConstTensorView& losses, device::Stream compute);

 private:
  comm::Communicator& ranks_;
  device::Stream communication_;
  device::Buffer sums_;
  device::AwaitsQueues awaits_;  // before the sums go
  device::Event known_, arrived_;
};

}  // namespace syslab::parallel
