// Memory taken out of the processor's caches, where whoever reads it next must fetch it.
#pragma once

#include <cstddef>

namespace syslab::device {

// Writes these bytes back and drops them from all caches of all cores. False, and nothing is done, on a processor that
// lets no program do so.
bool evict(const void* at, std::size_t bytes);
bool can_evict();
// Copies, and leaves nothing of what was written in a cache: evict() of it, in hardly more than the time of a copy.
void copy_past_caches(void* to, const void* from, std::size_t bytes);

}  // namespace syslab::device
