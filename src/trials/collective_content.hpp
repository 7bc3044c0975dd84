// The inputs of ranks in a measured collective and what each must hold after it, by a formula: written and checked on
// the device of the buffers, by a loop of the host or by kernels, with the same numbers.
#pragma once

#include <cstdint>

#include "comm/call.hpp"
#include "device/device.hpp"

namespace syslab::parallel {

// The number at `element` of what `rank` brings to sample `sample`: 0 to 255. The top bits of a product by an odd
// constant (Knuth's multiplicative hash): neighbours in element, rank and sample differ, so that a part in another's
// place shows.
constexpr std::uint32_t content(std::uint64_t element, int rank, std::uint64_t sample) {
  const auto mixed = static_cast<std::uint32_t>(element) * 0x9e37'79b1U +
                     static_cast<std::uint32_t>(rank) * 0x85eb'ca6bU +
                     static_cast<std::uint32_t>(sample) * 0xc2b2'ae35U;
  return mixed >> 24;
}

struct CollectiveContent {
  comm::Operation operation = comm::Operation::all_reduce;  // or reduce_scatter, all_gather, broadcast
  int ranks = 1, rank = 0;
  std::int64_t count = 0;  // elements of a rank's part; of the whole for all_reduce and broadcast
  std::uint64_t sample = 0;

  static constexpr int kRoot = 0;  // of a broadcast

  constexpr std::uint32_t brought(std::int64_t element) const {
    return content(static_cast<std::uint64_t>(element), rank, sample);
  }

  constexpr std::uint32_t expected(std::int64_t element) const {
    const auto at = static_cast<std::uint64_t>(element);
    switch (operation) {
      case comm::Operation::all_reduce:
        return sum(at);
      case comm::Operation::reduce_scatter:
        return sum(at + static_cast<std::uint64_t>(rank) * static_cast<std::uint64_t>(count));
      case comm::Operation::all_gather:
        return content(at % static_cast<std::uint64_t>(count), static_cast<int>(element / count), sample);
      default:
        return content(at, kRoot, sample);
    }
  }

 private:
  constexpr std::uint32_t sum(std::uint64_t place) const {
    std::uint32_t total = 0;
    for (int from = 0; from < ranks; ++from) total += content(place, from, sample);
    return total;
  }
};

// Element i becomes scale · brought(i): at once on the host, in the order of a GPU's stream.
void fill_brought(float* at, std::int64_t elements, const CollectiveContent& content, float scale,
                  device::Stream stream);

// Largest |found − scale · expected(i)| relative to the largest scale · expected(i), in double precision; infinite
// where nothing but zeros was expected and something else is there, NaN where there is one. A GPU's stream is waited
// for; a queue of the CPU has been.
double relative_error(const float* found, std::int64_t elements, const CollectiveContent& content, double scale,
                      device::Stream stream);

}  // namespace syslab::parallel
