// How series differ in a picture: colour, line, mark and fill.
#pragma once

#include <array>
#include <cstddef>

namespace syslab::report {

// Okabe and Ito's palette, its light colours darkened: told apart by people with colour-vision deficiencies, and each
// at least three times as bright or as dark as a white and as a near-black page. Line and mark differ as well.
inline constexpr std::array<const char*, 6> kColours{"#0072b2", "#d55e00", "#009e73", "#c46a98", "#a87900", "#7a7a7a"};
inline constexpr std::array<const char*, 6> kDashes{"solid", "(9,4)", "(3,3)", "(12,4,3,4)", "(6,3)", "(2,4)"};
inline constexpr std::array<int, 6> kFullMarks{7, 5, 9, 13, 11, 15};
inline constexpr std::array<int, 6> kHollowMarks{6, 4, 8, 12, 10, 14};

// Of what is filled (stacks, areas, lanes): each brighter than the one before, so that they are told apart in greys,
// too, with a line in ink around each.
inline constexpr std::array<const char*, 6> kFills{"#23395b", "#8a3b4a", "#2a8c6e", "#c98a3a", "#9cc3e6", "#f4e3b2"};

struct SeriesStyle {
  const char* colour;
  const char* dash;
  int mark;
};

inline SeriesStyle style_of(std::size_t series) {
  const std::size_t n = kColours.size();
  const bool second_round = series >= n;
  return {kColours[series % n], kDashes[(series + (second_round ? 1 : 0)) % n],
          (second_round ? kHollowMarks : kFullMarks)[series % n]};
}

}  // namespace syslab::report
