#include "parallel/fsdp/context.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace syslab::parallel {

BracketPlaces::BracketPlaces(const FsdpParts& parts, const ShardLayout& layout, const FsdpBracket& bracket) {
  const auto matrix_of = [&](int index) -> const ShardedMatrix& {
    return parts.matrices[static_cast<std::size_t>(index)];
  };
  std::int64_t rows = 0;
  const std::int64_t width = matrix_of(bracket.matrices.front()).width;
  for (const int matrix : bracket.matrices) {
    if (matrix_of(matrix).width != width) {
      throw Error(ErrorKind::usage,
                  fmt::format("'{}' is read together with matrices of another width", matrix_of(matrix).name));
    }
    first.push_back(rows * width);
    room = std::max(room, first.back() + layout.ranks() * layout.chunk(matrix));
    rows += matrix_of(matrix).rows;
  }
  shape = {rows, width};
}

FsdpContext::FsdpContext(comm::Communicator& ranks_, const FsdpParts& parts_, const ShardLayout& layout_,
                         device::Stream compute_, device::Stream communication_, StepObserver* observer_)
    : ranks(ranks_),
      parts(parts_),
      layout(layout_),
      compute(compute_),
      communication(communication_),
      observer(observer_),
      moves(communication_) {
  for (const FsdpBracket& bracket : parts.brackets) brackets.emplace_back(parts, layout, bracket);
}

TensorView FsdpContext::replicated(const TensorView& shards, int tensor) const {
  const std::int64_t elements = parts.replicated[static_cast<std::size_t>(tensor)].elements;
  const TensorView flat = stretch(shards, layout.replicated_offset(tensor), elements);
  return {flat.data, flat.dtype, {elements}};
}

void FsdpContext::refuse(const std::string& why) const {
  ranks.abort(why);
  throw Error(ErrorKind::usage, why);
}

}  // namespace syslab::parallel
