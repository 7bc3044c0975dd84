// Whether this Python lacks what a judged process claims: found out by a process of ours, with the same interpreter,
// that runs nothing of what was handed in (src/python/syslab_lacks.py). What a judged process says decides nothing.
#pragma once

#include <optional>
#include <string>

#include "core/lack.hpp"

namespace syslab::worker {

// The claim with what was found out about it; nothing where it is not so. `file`: one of the project that was handed
// in, whose files are read. Asked once a process for each claim; takes as long as torch takes to import.
std::optional<Lack> established(const Lack& claim, const std::string& file);

}  // namespace syslab::worker
