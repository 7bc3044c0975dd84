// Gradients by their sizes, one behind the other without padding.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "planning/pieces.hpp"

namespace syslab::test {

inline parallel::GradientPieces pieces_of_sizes(std::span<const std::int64_t> elements, DType dtype = DType::f32) {
  std::vector<parallel::Piece> pieces;
  std::int64_t first = 0;
  for (const std::int64_t one : elements) {
    pieces.push_back({"p" + std::to_string(pieces.size()), first, one});
    first += one;
  }
  return {std::move(pieces), dtype};
}

inline parallel::GradientPieces pieces_of_sizes(std::initializer_list<std::int64_t> elements) {
  return pieces_of_sizes(std::span(elements.begin(), elements.size()));
}

}  // namespace syslab::test
