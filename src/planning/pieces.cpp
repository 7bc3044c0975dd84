#include "planning/pieces.hpp"

#include <fmt/format.h>

#include <string_view>
#include <unordered_set>
#include <utility>

#include "core/error.hpp"

namespace syslab::parallel {

GradientPieces::GradientPieces(std::vector<Piece> pieces, DType dtype) : pieces_(std::move(pieces)), dtype_(dtype) {
  if (pieces_.empty()) throw Error(ErrorKind::usage, "no gradients at all: data parallelism needs one to reduce");
  std::unordered_set<std::string_view> names;
  std::int64_t end = 0;
  for (const Piece& piece : pieces_) {
    if (piece.elements < 1) {
      throw Error(ErrorKind::usage,
                  fmt::format("the gradient '{}' has {} elements; at least 1 is wanted", piece.name, piece.elements));
    }
    if (piece.first < end) {
      throw Error(ErrorKind::usage,
                  fmt::format("the gradient '{}' begins at element {} of the arena, before the one ahead of it ends "
                              "({}): pieces lie in the order in which they become final",
                              piece.name, piece.first, end));
    }
    if (!names.insert(piece.name).second) {
      throw Error(ErrorKind::usage, fmt::format("two gradients are called '{}': a tied parameter is one piece, final "
                                                "when its last use is done",
                                                piece.name));
    }
    end = piece.end();
  }
}

GradientPieces GradientPieces::as(DType wire) const {
  GradientPieces made = *this;
  made.dtype_ = wire;
  return made;
}

}  // namespace syslab::parallel
