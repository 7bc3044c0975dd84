// The GPU of a stream, for entry points that plan for it and refuse what they cannot run on.
#pragma once

#include <string_view>

#include "device/device.hpp"

namespace syslab::attention {

struct Gpu {
  device::Place place;
  int sm = 0;  // compute capability: 90 for 9.0
  int multiprocessors = 0;
  int shared_bytes_per_block = 0;  // at most, when a kernel opts in
};

// Asked of CUDA once a thread and GPU. Error(usage) for the CPU's stream, Error(device) for a GPU older than
// `minimum_sm`; `operation` begins the message.
Gpu require_gpu(std::string_view operation, device::Stream stream, int minimum_sm);

}  // namespace syslab::attention
