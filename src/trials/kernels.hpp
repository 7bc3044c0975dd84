// This room's own kernels behind plain functions: kernels.cu where the build has CUDA, else kernels_none.cpp, where
// they throw Error(device). Nobody outside this room includes this. The GPU of `stream` is current when they are
// called.
#pragma once

#include <cstdint>

#include "device/device.hpp"
#include "trials/collective_content.hpp"

namespace syslab::parallel::kernels {

void fill_brought(float* at, std::int64_t elements, const CollectiveContent& content, float scale,
                  device::Stream stream);

// Raises two words on the GPU, zeros at first, to the bits of the largest |found − scale · expected| and of the largest
// scale · expected. A NaN's bits are above those of all numbers.
void raise_deviation(const float* found, std::int64_t elements, const CollectiveContent& content, double scale,
                     std::uint64_t* worst_and_largest, device::Stream stream);

}  // namespace syslab::parallel::kernels
