// A model's gradients as data parallelism sees them: pieces of one arena, in the order in which a backward pass
// finishes them, so that a run of pieces that are final is one contiguous stretch of memory.
//
//   const GradientPieces pieces({{"fc2.weight", 0, 50}, {"fc1.weight", 64, 100}}, DType::f32);
//   pieces.bytes(0, 2);                        // 656: what lies between two pieces is padding and is sent with them
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.hpp"

namespace syslab::parallel {

struct Piece {
  std::string name;
  std::int64_t first = 0, elements = 0;  // of the arena

  std::int64_t end() const { return first + elements; }
};

// In the order in which they become final, which is that of their memory.
class GradientPieces {
 public:
  // Error(usage) naming the piece: none at all, one without elements, two of one name, or one that begins before the
  // one ahead of it ends.
  GradientPieces(std::vector<Piece> pieces, DType dtype);

  int size() const { return static_cast<int>(pieces_.size()); }
  const Piece& operator[](int piece) const { return pieces_[static_cast<std::size_t>(piece)]; }
  DType dtype() const { return dtype_; }

  // Of pieces [begin, end), which are at least one: where they start in the arena and how far they reach.
  std::int64_t first(int begin) const { return (*this)[begin].first; }
  std::int64_t elements(int begin, int end) const { return (*this)[end - 1].end() - (*this)[begin].first; }
  std::int64_t bytes(int begin, int end) const {
    return elements(begin, end) * static_cast<std::int64_t>(size_of(dtype_));
  }
  std::int64_t bytes() const { return bytes(0, size()); }

  // The same pieces as they travel when they are sent in another dtype.
  GradientPieces as(DType wire) const;

 private:
  std::vector<Piece> pieces_;
  DType dtype_;
};

}  // namespace syslab::parallel
