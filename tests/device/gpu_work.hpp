// Kernels for tests: work that takes a known time, and work that goes wrong.
#pragma once

#include <cstdint>

#include "device/device.hpp"

namespace syslab::device {

void spin(std::uint64_t nanoseconds, Stream stream);  // one thread, for as long
void spin_everywhere(std::uint64_t nanoseconds, int blocks, Stream stream);
void add_one(std::uint32_t* value, Stream stream);
void launch_with_too_many_threads(Stream stream);  // unchecked
void write_to_nowhere(Stream stream);              // unchecked; the GPU is lost to this process afterwards

}  // namespace syslab::device
