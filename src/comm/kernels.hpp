// Sums over ranks on a GPU: kernels.cu if the build has CUDA, else kernels_none.cpp.
#pragma once

#include <cstdint>
#include <span>

#include "core/dtype.hpp"
#include "device/device.hpp"

namespace syslab::comm::kernels {

inline constexpr std::size_t kMostSources = 16;

// As reduce_in_order() of comm/reduce.hpp with Reduction::sum, and the same bits. `to` may be one of the sources
// and overlaps no other. The GPU of `stream` must be current.
void sum_in_order(std::span<const void* const> sources, void* to, DType dtype, std::int64_t count,
                  device::Stream stream);

}  // namespace syslab::comm::kernels
