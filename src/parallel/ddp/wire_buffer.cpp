#include "parallel/ddp/wire_buffer.hpp"

namespace syslab::parallel {
namespace {

std::vector<std::int64_t> places(const GradientPieces& pieces, WireBuffer::Layout layout) {
  const bool dense = layout == WireBuffer::Layout::dense;
  std::vector<std::int64_t> at{0};
  for (int i = 0; i < pieces.size(); ++i) {
    if (!dense) at.back() = pieces.first(i) - pieces.first(0);
    at.push_back(at.back() + pieces[i].elements);
  }
  return at;
}

}  // namespace

WireBuffer::WireBuffer(const GradientPieces& pieces, const TensorView& arena, DType wire, Layout layout,
                       device::Stream stream)
    : pieces_(pieces),
      arena_(arena),
      wire_(wire),
      at_(places(pieces, layout)),
      layout_(layout),
      moves_(stream),
      buffer_(static_cast<std::size_t>(at_.back()) * size_of(wire), "gradients_on_the_wire", stream,
              device::MemoryCategory::gradient),
      awaits_(stream) {}

TensorView WireBuffer::view(int begin, int end) const {
  const TensorView all(buffer_.data(), wire_, {1, at_.back()});
  const std::int64_t first = at_[static_cast<std::size_t>(begin)];
  // Padding after the last piece of a bucket belongs to the next bucket.
  const std::int64_t past = at_[static_cast<std::size_t>(end) - 1] + pieces_[end - 1].elements;
  return stretch(all, first, past - first);
}

void WireBuffer::move(int begin, int end, bool to_wire) const {
  const TensorView wire = view(begin, end);
  const TensorView lies = stretch(arena_, pieces_.first(begin), wire.elements());
  to_wire ? moves_.move(lies, wire) : moves_.move(wire, lies);
}

void WireBuffer::pack(int begin, int end) const {
  if (layout_ == Layout::as_in_arena) return move(begin, end, true);
  for (int piece = begin; piece < end; ++piece) move(piece, piece + 1, true);
}

void WireBuffer::unpack(int begin, int end) const {
  if (layout_ == Layout::as_in_arena) return move(begin, end, false);
  for (int piece = begin; piece < end; ++piece) move(piece, piece + 1, false);
}

}  // namespace syslab::parallel
