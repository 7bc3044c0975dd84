// Hardware properties of a device, for planning and messages.
#pragma once

#include <cstdint>
#include <string>

#include "device/device.hpp"

namespace syslab::device {

struct DeviceProperties {
  std::string name;                          // "NVIDIA H100 80GB HBM3"
  int sm = 0;                                // compute capability: 90 for 9.0; 0 on the CPU
  int multiprocessors = 0;                   // on the CPU: threads of parallel_for
  std::uint64_t cache_bytes = 0;             // last level: L2 of a GPU; 0 if unknown (for the CPU see measure/)
  std::uint64_t shared_bytes_per_block = 0;  // at most, when a kernel opts in
  std::uint64_t memory_bytes = 0;            // of all processes together
  std::string uuid;                          // "GPU-6ed1…"; empty on the CPU
};

// Error(device) where there is no such device. Free memory is memory_use()'s (device/memory.hpp).
DeviceProperties properties(Place place);

}  // namespace syslab::device
