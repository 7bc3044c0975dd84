// The GPU of a stream, for entry points that run only on GPUs.
#pragma once

#include <string_view>

#include "device/device.hpp"

namespace syslab::ops {

struct Gpu {
  device::Place place;
  int sm = 0;  // compute capability: 90 for 9.0
  int multiprocessors = 0;
  int shared_bytes_per_block = 0;  // maximum, if a kernel opts in
};

// The minimum that this project's machine code is built for.
inline constexpr int kMinimumSm = 80;

// Queried once per thread and GPU. Error(usage) for the CPU's stream, Error(device) for a GPU older than kMinimumSm;
// the message begins with `operation`.
Gpu require_gpu(std::string_view operation, device::Stream stream);

}  // namespace syslab::ops
