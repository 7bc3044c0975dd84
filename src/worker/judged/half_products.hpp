// Whether the user's torch multiplies in fp16 on a CPU. A process of our own finds out: what a judged process says of
// it decides nothing.
#pragma once

#include <optional>

#include "core/lack.hpp"

namespace syslab::worker {

// That it does not, established. Nothing: it does, or there is no torch, which others report. Asked once a process;
// takes as long as torch takes to import.
std::optional<Lack> lacks_half_products();

}  // namespace syslab::worker
