// The streams of random numbers that a module and its batches follow from, each derived once: a law reads them element
// by element.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/random.hpp"

namespace syslab::data_parallel {

// What RandomStream::derive(seed, experiment, "", stream) gives; both texts are literals.
inline const RandomStream& stream_of(std::uint64_t seed, std::string_view experiment, std::string_view stream) {
  struct Derived {
    std::uint64_t seed = 0;
    std::string_view experiment, stream;
    RandomStream numbers{0};
  };
  constexpr std::size_t kKept = 4;  // a law reads two or three at a time
  thread_local std::array<Derived, kKept> kept;
  thread_local std::size_t next = 0;
  for (const Derived& one : kept) {
    if (one.seed == seed && one.experiment == experiment && one.stream == stream) return one.numbers;
  }
  Derived& made = kept[next++ % kKept];
  made = {seed, experiment, stream, RandomStream::derive(seed, experiment, "", stream)};
  return made.numbers;
}

}  // namespace syslab::data_parallel
