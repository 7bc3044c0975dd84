// This room's own kernels behind plain functions: kernels.cu where the build has CUDA, else kernels_none.cpp, where
// they throw Error(device). Nobody outside this room includes this.
#pragma once

#include <cstdint>

#include "check/tally.hpp"
#include "core/tensor.hpp"
#include "device/device.hpp"

namespace syslab::check::kernels {

// All of a contiguous tensor against `expected`, with a bound each or one for all. Waits.
Tally compare(const ConstTensorView& found, std::uint64_t poison, const double* expected, const double* bounds,
              bool one_bound, const std::int64_t* sizes, int rank, device::Stream stream);

// Adds a checksum of the bytes to *sum; both in the GPU's memory, `data` aligned to 8.
void fingerprint(const void* data, std::size_t bytes, std::uint64_t* sum, device::Stream stream);

}  // namespace syslab::check::kernels
