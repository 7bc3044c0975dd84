// Landlock rulesets (landlock(7)) by the kernel's own interface: the C library has no wrapper for it, and headers of
// distributions know less than their kernels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/process/process.hpp"

namespace syslab::judge {

// Version of the interface; 0 where there is none. 3: truncation; 4: TCP; 5: ioctl of devices; 6: signals and abstract
// sockets.
int landlock_version();

// Everything may be executed and, but for the folders `hidden` (there or made later, wherever they are mounted) and
// what is in them, read; yet `shown` may be, wherever it lies. Of `unlisted` not even the names of what is in them are
// told, nor, since no right is taken back further down, of what lies beside them on the way there. `writable` and what
// is in it may be written, and the devices that a program writes to (/dev/null, GPUs, with `shared_memory` /dev/shm).
// No TCP unless `network`. Error(internal) with the system's reason.
FileDescriptor make_ruleset(const std::string& writable, const std::vector<std::string>& hidden, bool shared_memory,
                            bool network, const std::string& shown = {}, const std::vector<std::string>& unlisted = {});

}  // namespace syslab::judge
