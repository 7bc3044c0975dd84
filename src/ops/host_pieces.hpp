// Splits a loop into pieces for host threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/parallel.hpp"

namespace syslab::ops {

// Work that justifies waking a thread: about half a millisecond of one core in a memory-bound loop.
inline constexpr std::int64_t kElementsOfAThread = std::int64_t{1} << 19;

// Calls body(first, end) for pieces of at most `piece` items that cover [0, count), on several threads if the whole,
// with `elements` elements per item, justifies it. Piece boundaries do not depend on the threads.
template <typename Body>
void for_pieces(std::int64_t count, std::int64_t piece, std::int64_t elements, const Body& body) {
  const std::int64_t threads = 1 + count * elements / kElementsOfAThread;
  device::parallel_for((count + piece - 1) / piece,
                       [&](std::int64_t index, int) { body(index * piece, std::min(count, (index + 1) * piece)); },
                       static_cast<int>(std::min<std::int64_t>(threads, device::thread_count())));
}

// Rows per piece, so that a piece has some 16,000 elements.
inline std::int64_t rows_of_a_piece(std::int64_t dim) {
  return std::max<std::int64_t>(1, (std::int64_t{1} << 14) / std::max<std::int64_t>(dim, 1));
}

}  // namespace syslab::ops
