// The memory that a case may take in this process.
#pragma once

#include <cstdint>

namespace syslab::worker {

// Address space is what can be limited without privileges. The process's own mappings (libraries, thread stacks) come
// on top of what the case may take; 0: no limit but the system's. Only the soft limit: a child may lift it to make room
// for its own libraries. Error(internal), also below, if the system refuses.
void limit_memory(std::uint64_t limit_bytes);

// The same in a judged process, which cannot lift it: unless 0, the hard limit, too.
void limit_memory_for_good(std::uint64_t limit_bytes);

}  // namespace syslab::worker
