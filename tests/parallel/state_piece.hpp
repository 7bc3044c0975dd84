// What a rank has of a divided state, made visible for a test: ranges of the elements of parameters, of their weights
// or of one of their moments. Flat ranges, rows and whole parameters all come to this.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.hpp"
#include "parallel/ddp/wire_buffer.hpp"
#include "parallel/fsdp/fsdp.hpp"
#include "parallel/owned_update.hpp"
#include "parallel/zero/flat_shards.hpp"

namespace syslab::test {

using Moment = parallel::OwnedUpdate::Moment;

enum class StatePlane { weight, first_moment, second_moment };

inline std::string_view to_string(StatePlane plane) {
  constexpr std::string_view kNames[] = {"weight", "first moment", "second moment"};
  return kNames[static_cast<std::size_t>(plane)];
}

inline StatePlane plane_of(Moment moment) {
  return moment == Moment::first ? StatePlane::first_moment : StatePlane::second_moment;
}

struct StatePiece {
  StatePlane plane = StatePlane::weight;
  std::string parameter;
  std::int64_t first = 0;  // of the parameter's elements, row-major
  TensorView values;       // contiguous
};

// Adds those of `tensors`, or parts of them, that lie in a stretch of the arena with given values.
inline void add_pieces(std::vector<StatePiece>& pieces, std::span<const parallel::Piece> tensors, StatePlane plane,
                       const parallel::Stretch& at, const TensorView& values) {
  for (const parallel::Piece& tensor : tensors) {
    const std::int64_t first = std::max(tensor.first, at.first), past = std::min(tensor.end(), at.end());
    if (first >= past) continue;
    pieces.push_back(
        {plane, tensor.name, first - tensor.first, parallel::stretch(values, first - at.first, past - first)});
  }
}

// Rows of this rank, and all that is replicated. `moment`: of all shards, laid out as the weights.
inline std::vector<StatePiece> pieces_of(const parallel::Fsdp& fsdp, int rank,
                                         const std::function<TensorView(Moment)>& moment) {
  std::vector<StatePiece> pieces;
  const auto add = [&](const std::string& name, std::int64_t first, std::int64_t offset, std::int64_t count) {
    pieces.push_back({StatePlane::weight, name, first, parallel::stretch(fsdp.weights(), offset, count)});
    for (const Moment one : {Moment::first, Moment::second}) {
      pieces.push_back({plane_of(one), name, first, parallel::stretch(moment(one), offset, count)});
    }
  };
  const parallel::FsdpParts& parts = fsdp.parts();
  const parallel::ShardLayout& layout = fsdp.layout();
  for (int i = 0; i < static_cast<int>(parts.matrices.size()); ++i) {
    const parallel::ShardedMatrix& matrix = parts.matrices[static_cast<std::size_t>(i)];
    const std::int64_t own = layout.own_rows(i, rank) * matrix.width;
    if (own > 0) add(matrix.name, rank * layout.chunk(i), layout.offset(i), own);
  }
  for (int i = 0; i < static_cast<int>(parts.replicated.size()); ++i) {
    const parallel::ReplicatedTensor& tensor = parts.replicated[static_cast<std::size_t>(i)];
    add(tensor.name, 0, layout.replicated_offset(i), tensor.elements);
  }
  return pieces;
}

}  // namespace syslab::test
