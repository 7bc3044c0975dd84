// What Linux tells a process of its own memory (proc(5)).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace syslab {

// A field of /proc/self/status in bytes: "VmSize" (addresses), "VmRSS" (resident), "VmHWM" (the most resident so far).
// Nothing where it cannot be read.
std::optional<std::uint64_t> own_memory(std::string_view field);

// Makes VmHWM count from now. False where the kernel does not let us: then it stays the process's.
bool reset_memory_peak();

}  // namespace syslab
