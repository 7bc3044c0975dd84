// The chain of this experiment on a GPU: chain.cu where the build has CUDA, else chain_none.cpp.
#pragma once

#include <cstdint>

#include "device/device.hpp"

namespace syslab::selftest {

// What goes wrong in a call: nothing; a launch that the GPU refuses and nobody asks about; an address that is nobody's.
enum class GpuFault { none, launch, illegal };

// Queues `steps` steps from the bits of *start; *end becomes the upper 32 bits of where they lead. Both in GPU memory.
void queue_chain(const double* start, std::int64_t steps, double* end, GpuFault fault, device::Stream stream);

}  // namespace syslab::selftest
