// Kernels of the copy, behind plain functions (cuda_kernels.cu).
#pragma once

#include <cstddef>

#include "device/device.hpp"

namespace syslab::copy {

// Elements of `width` bytes (2, 4 or 8); both pointers are aligned to it. Work is queued on `stream`.
void copy_vectors(const void* from, void* to, std::size_t bytes, std::size_t width, device::Stream stream);

}  // namespace syslab::copy
