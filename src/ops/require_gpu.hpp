// The GPU of a stream, for entry points that run on no other device.
#pragma once

#include <string_view>

#include "device/device.hpp"

namespace syslab::ops {

struct Gpu {
  device::Place place;
  int sm = 0;  // compute capability: 90 for 9.0
  int multiprocessors = 0;
  int shared_bytes_per_block = 0;  // at most, when a kernel opts in
};

// What the machine code of this project is made for, at least.
inline constexpr int kMinimumSm = 80;

// Asked of CUDA once a thread and GPU. Error(usage) for the CPU's stream, Error(device) for a GPU older than
// kMinimumSm; `operation` begins the message.
Gpu require_gpu(std::string_view operation, device::Stream stream);

}  // namespace syslab::ops
