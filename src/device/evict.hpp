// Memory taken out of the processor's caches, where whoever reads it next must fetch it.
#pragma once

#include <cstddef>

namespace syslab::device {

// Writes these bytes back and drops them from all caches of all cores. False, and nothing is done, on a processor that
// lets no program do so.
bool evict(const void* at, std::size_t bytes);
bool can_evict();

}  // namespace syslab::device
