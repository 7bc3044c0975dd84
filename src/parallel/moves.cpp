#include "parallel/moves.hpp"

#include "device/memory.hpp"
#include "parallel/in_order.hpp"

namespace syslab::parallel {

using device::Stream;

TensorView stretch(const TensorView& tensor, std::int64_t first, std::int64_t count) {
  auto* bytes = static_cast<std::byte*>(tensor.data) + first * static_cast<std::int64_t>(size_of(tensor.dtype));
  return {bytes, tensor.dtype, {1, count}};
}

Moves::Moves(Stream stream)
    : stream_(stream), rung_(&elementwise::find_rung(stream.kind == device::Kind::cuda ? "fused_cuda" : "naive")) {}

void Moves::move(const ConstTensorView& from, const TensorView& to) const {
  if (from.dtype == to.dtype) {
    return device::copy(to.data, from.data, static_cast<std::size_t>(to.elements()) * size_of(to.dtype), stream_);
  }
  in_order(stream_, [rung = rung_, from, to](Stream stream) { rung->cast({1, to.elements()}, {from, to}, stream); });
}

void Moves::add(const ConstTensorView& term, const TensorView& sum) const {
  in_order(stream_, [rung = rung_, term, sum](Stream stream) {
    rung->add({1, sum.elements()}, {.a = sum, .b = term, .y = sum}, stream);
  });
}

}  // namespace syslab::parallel
