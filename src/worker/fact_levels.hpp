// How deep the facts of a worker may nest.
#pragma once

#include <cstddef>

#include "core/json_text.hpp"

namespace syslab::worker {

// Facts are stored below lists of ranks and of launches, and read again from there and from what is printed of them.
inline constexpr std::size_t kMostFactLevels = kMostLevels - 10;

}  // namespace syslab::worker
