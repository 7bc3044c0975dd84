// What Linux reports to a process about its own memory (proc(5)).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace syslab {

// A field of /proc/self/status in bytes: "VmSize" (addresses), "VmRSS" (resident), "VmHWM" (the most resident so far).
// Nothing if it cannot be read.
std::optional<std::uint64_t> own_memory(std::string_view field);

// Restarts VmHWM from now. False if the kernel does not allow it: then VmHWM still covers the whole process.
bool reset_memory_peak();

}  // namespace syslab
