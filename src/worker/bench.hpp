// Where a case runs and is timed: the host, or a GPU with a stream of the case's own.
#pragma once

#include <memory>
#include <string>

#include "core/json.hpp"
#include "device/device.hpp"
#include "measure/device.hpp"
#include "worker/operator_case.hpp"

namespace syslab::worker {

class Bench {
 public:
  // Unsupported when the case's device is not the one that was asked for; Error(device) without a GPU that can be used,
  // saying why there is none.
  Bench(const CaseRequest& request, const OperatorCase& operator_case);

  device::Stream stream() const { return stream_; }
  measure::Device& device() const { return *device_; }
  // What device it is, and in what state: stored with the attempt.
  Json facts() const;

 private:
  std::unique_ptr<measure::Device> device_;
  device::Stream stream_;    // the device's own
  std::string computes_on_;  // "cpu", "cuda": the case's device, which is not its tensors' for another process
};

}  // namespace syslab::worker
