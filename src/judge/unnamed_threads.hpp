// What lets CUDA's driver start behind walls: it gives its threads names in /proc, which Landlock refuses, and ends
// with error 304 over that. A small library, loaded before it, lets it write them into nothing.
#pragma once

#include <string>

namespace syslab::judge {

// Writes the library into `folder`. Returns the value of LD_PRELOAD for a process behind walls and for what it starts:
// the library, then what our own environment has there. Error(internal) if it cannot be written.
std::string preload_unnamed_threads(const std::string& folder);

}  // namespace syslab::judge
