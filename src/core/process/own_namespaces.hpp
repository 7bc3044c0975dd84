// What of a machine a process has for itself, and its children with it. A /dev/shm: what they put there is seen by
// nobody else, and gone with the last of them. A network that is a loopback: they meet each other by it, and nobody
// else. Both take a user namespace, which some systems refuse to whoever is not root.
#pragma once

#include <cstdint>

namespace syslab {

// Whether this system lets us. Tried once each, in a child; the loopback together with the /dev/shm.
bool offers_own_shared_memory();
bool offers_own_loopback();

// For a child between its start and its program, in memory of its own (so not behind vfork): async-signal-safe calls
// alone. A Landlock ruleset that is not in force yet gets the right to write to its /dev/shm; -1: there is none. The
// errno of what failed, or 0.
// The /dev/shm holds so many bytes, and an entry for each page of them; 0: as many as the system gives to any.
int take_own_namespaces(int landlock_ruleset, std::uint64_t shared_memory_bytes, bool loopback);

}  // namespace syslab
