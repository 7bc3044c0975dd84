// This room's own kernels behind plain functions: kernels.cu, digest.cu and fill_random.cu if the build has CUDA, else
// kernels_none.cpp. Private to this room. Callers make the GPU of `stream` current, unless stated otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/random.hpp"
#include "core/tensor.hpp"
#include "device/device.hpp"
#include "device/pattern.hpp"

namespace syslab::device::kernels {

void fill_pattern(void* at, const Pattern& pattern, std::size_t width, std::int64_t first_position, std::int64_t count,
                  Stream stream);

// Adds to three words on the GPU: how many differ, the largest of (~index of a differing one), the largest index + 1.
// They start as zeros.
void count_differences(const void* at, const Pattern& pattern, std::size_t width, std::int64_t first_position,
                       std::int64_t count, std::uint64_t* found, Stream stream);

void count_nans(const void* at, std::size_t width, std::uint64_t exponent_mask, std::int64_t count,
                std::uint64_t* found, Stream stream);

// Adds both sums of device/digest.hpp to two words on the GPU, which begin as zeros.
void add_digest(const void* data, std::size_t bytes, std::uint64_t* sums, Stream stream);

void fill_random(const TensorView& out, std::uint64_t key, Distribution distribution, float scale, std::uint64_t first,
                 Stream stream);

// Waits on the GPU until *ticket (pinned host memory) is at least `wanted`, or until `limit_ns` have passed; then adds
// 1 to *expired (pinned host memory).
void wait_for_ticket(const std::uint64_t* ticket, std::uint64_t wanted, std::uint64_t limit_ns, std::uint64_t* expired,
                     Stream stream);

// Every multiprocessor that runs a block of this launch writes its cycle counter and the GPU's nanoseconds to
// stamps[its number]. `multiprocessors` entries.
struct ClockStamp {
  std::uint64_t cycles = 0, nanoseconds = 0;
};
void stamp_clocks(ClockStamp* stamps, int multiprocessors, Stream stream);

}  // namespace syslab::device::kernels
