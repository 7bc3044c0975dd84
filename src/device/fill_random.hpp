// Draws inputs where they are needed: syslab::fill() on the host, a kernel on a GPU, with the same bits.
#pragma once

#include <cstdint>

#include "core/random.hpp"
#include "core/tensor.hpp"
#include "device/device.hpp"

namespace syslab::device {

// Fills `out` (memory of the stream's device; any dtype, any strides) as syslab::fill() does, in the order of `stream`.
void fill_random(const TensorView& out, const RandomStream& random, Distribution distribution, float scale,
                 std::uint64_t first, Stream stream);

}  // namespace syslab::device
