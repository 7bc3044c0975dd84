// A /dev/shm of a process's own: what it and its children put there is seen by nobody else, and gone with the last of
// them. It takes a user namespace, which some systems refuse to whoever is not root.
#pragma once

namespace syslab {

// Whether this system lets us. Tried once, in a child.
bool offers_own_shared_memory();

// For a child between its start and its program, in memory of its own (so not behind vfork): async-signal-safe calls
// alone. A Landlock ruleset that is not in force yet gets the right to write there; -1: there is none. The errno of
// what failed, or 0.
int take_own_shared_memory(int landlock_ruleset);

}  // namespace syslab
