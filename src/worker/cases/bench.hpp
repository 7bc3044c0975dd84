// Where a case runs and is timed: the host, or a GPU with a stream of the case's own.
#pragma once

#include <memory>
#include <string>

#include "core/text/json.hpp"
#include "device/device.hpp"
#include "measure/device.hpp"
#include "measure/floor.hpp"
#include "worker/cases/case_context.hpp"

namespace syslab::worker {

class Bench {
 public:
  // `device`: where the case's tensors are. Unsupported when it is not the one that was asked for, unless the
  // implementation is in another process, which computes where it was told to; Error(device) without a GPU that can be
  // used, saying why there is none.
  Bench(const CaseRequest& request, device::Kind device, bool in_another_process = false);

  device::Stream stream() const { return stream_; }
  measure::Device& device() const { return *device_; }
  // Of where the implementation computes.
  measure::Peaks peaks(DType dtype) const;
  // The device and its state: stored with the attempt.
  Json facts() const;

 private:
  std::unique_ptr<measure::Device> device_;
  device::Stream stream_;   // the device's own
  DeviceKind computes_on_;  // the case's device, which is not its tensors' for another process
  device::Place gpu_;       // of the case, if it has one: a rank's own; CUDA_VISIBLE_DEVICES says which that is
};

}  // namespace syslab::worker
