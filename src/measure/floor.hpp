// The time below which no program could have done a call's work on a device: by its units and its highest clock, never
// by what was measured on it. A result below is not believed: somebody did less, or a clock is wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/dtype.hpp"
#include "device/properties.hpp"

namespace syslab::measure {

// What no program exceeds; 0: not known, and then no floor is made of it.
struct Peaks {
  double flops_per_second = 0, bytes_per_second = 0;
  std::string flops_by, bytes_by;  // the product that made each: "132 multiprocessors × 4096 a cycle × 1.98 GHz"
};

// Of this machine's processors, for numbers that are narrow or wide as `dtype`. Their highest clock is not told
// reliably, so one is taken that no processor has; of the traffic with memory nothing is known.
Peaks host_peaks(DType dtype);
// Of a GPU, as NVML tells its highest clocks. Single and double precision count at the rate of tensor cores, which
// may honestly be used for both.
Peaks gpu_peaks(const device::DeviceProperties& gpu, DType dtype);

// The least that a call must do: operations that a mask leaves, each tensor read or written once.
struct NeededWork {
  double flops = 0, bytes = 0;
  bool cold = false;  // inputs and outputs are in no cache when a call begins
  std::uint64_t last_level_cache_bytes = 0;
};

struct Floor {
  double seconds = 0;
  std::string arithmetic;
};

// Nothing where nothing is known. Bytes count only if the caches are cold and the call's tensors are at least four
// times the last-level cache, and without what that cache may still hold when the call is over.
std::optional<Floor> floor_of(const NeededWork& work, const Peaks& peaks);

// Why a time of a call is not believed; nothing if it may be true. 5 % below the floor may be.
std::optional<std::string> below_floor(double seconds, const Floor& floor);

}  // namespace syslab::measure
