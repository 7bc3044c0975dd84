#include "parallel/model_pieces.hpp"

#include <utility>

namespace syslab::parallel {

GradientPieces pieces_of(const model::ParameterArena& arena) {
  const model::ParameterLayout& layout = arena.layout();
  std::vector<Piece> pieces;
  for (const int index : layout.arena_order()) {
    pieces.push_back({layout.info(index).name, layout.offset(index), layout.info(index).shape.elements()});
  }
  return {std::move(pieces), arena.dtype(model::Plane::gradient)};
}

std::vector<int> piece_of_parameter(const model::ParameterLayout& layout) {
  std::vector<int> piece(static_cast<std::size_t>(layout.size()));
  int next = 0;
  for (const int index : layout.arena_order()) piece[static_cast<std::size_t>(index)] = next++;
  return piece;
}

}  // namespace syslab::parallel
