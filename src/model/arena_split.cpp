// Weights in halves: the part of an arena that is specific to them. Halves are split and joined on the host if values
// come from there or go there, and on a device by the code that changes them (ops/adamw, ops/elementwise).
#include <cstdint>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "core/split_float.hpp"
#include "device/memory.hpp"
#include "model/arena.hpp"
#include "model/weights/convert.hpp"

namespace syslab::model {
namespace {

std::vector<int> norms_of(const ParameterLayout& layout) {
  std::vector<int> norms;
  for (int index = 0; index < layout.size(); ++index) {
    if (layout.info(index).kind == ParameterKind::norm) norms.push_back(index);
  }
  return norms;
}

}  // namespace

void ParameterArena::make_gains() {
  const std::vector<int> norms = norms_of(layout_);
  std::vector<std::int64_t> offsets;
  for (const int index : norms) offsets.push_back(layout_.offset(index));
  const std::size_t values = norms.size() * static_cast<std::size_t>(layout_.config().d_model) * sizeof(float);
  const auto category = device::MemoryCategory::parameter;
  gains_ = device::Buffer(values, "parameters: gains of norms", stream_, category);
  gain_offsets_ =
      device::Buffer(offsets.size() * sizeof(std::int64_t), "parameters: places of gains", stream_, category);
  device::fill_bytes(gains_.data(), 0, values, stream_);
  device::copy_now(gain_offsets_.data(), offsets.data(), gain_offsets_.bytes(), stream_);
}

ParameterArena::Gains ParameterArena::gains() const {
  if (!splits()) throw Error(ErrorKind::internal, "gains of norms lie apart only where weights are split");
  const std::int64_t d = layout_.config().d_model, norms = 2 * layout_.config().layers + 1;
  return {{gains_.as<std::byte>(), DType::f32, {norms, d}}, gain_offsets_.as<std::int64_t>()};
}

// Norms are registered two for each layer, ln1 and ln2, and after them the final one.
std::int64_t ParameterArena::gain_row(int index) const {
  const std::int64_t layer = layout_.info(index).layer;
  if (layer < 0) return 2 * layout_.config().layers;
  return 2 * layer + (layout_.layer(layer).ln1 == index ? 0 : 1);
}

void ParameterArena::write_halves(int index, std::int64_t first, const ConstTensorView& values) {
  const std::int64_t count = values.elements();
  void *to_high = address(Plane::copy, index, first, count), *to_low = address(Plane::low, index, first, count);
  if (count == 0) return;
  const auto size = static_cast<std::size_t>(count);
  const auto whole = std::make_unique_for_overwrite<float[]>(size);
  const auto high = std::make_unique_for_overwrite<std::uint16_t[]>(size);
  const auto low = std::make_unique_for_overwrite<std::uint16_t[]>(size);
  convert(values, TensorView(whole.get(), DType::f32, {count}));
  for (std::size_t i = 0; i < size; ++i) {
    const SplitFloat halves = split(whole[i]);
    high[i] = halves.high;
    low[i] = halves.low;
    whole[i] = joined(halves);  // a NaN is the one that comes back
  }
  device::copy_now(to_high, high.get(), size * sizeof(std::uint16_t), stream_);
  device::copy_now(to_low, low.get(), size * sizeof(std::uint16_t), stream_);
  if (layout_.info(index).kind != ParameterKind::norm) return;
  float* const gain = gains_.as<float>() + gain_row(index) * layout_.config().d_model + first;
  device::copy_now(gain, whole.get(), size * sizeof(float), stream_);
}

void ParameterArena::read_halves(int index, std::int64_t first, const TensorView& values) const {
  const std::int64_t count = values.elements();
  const void *from_high = address(Plane::copy, index, first, count),
             *from_low = address(Plane::low, index, first, count);
  if (count == 0) return;
  const auto size = static_cast<std::size_t>(count);
  const auto whole = std::make_unique_for_overwrite<float[]>(size);
  const auto high = std::make_unique_for_overwrite<std::uint16_t[]>(size);
  const auto low = std::make_unique_for_overwrite<std::uint16_t[]>(size);
  device::copy_now(high.get(), from_high, size * sizeof(std::uint16_t), stream_);
  device::copy_now(low.get(), from_low, size * sizeof(std::uint16_t), stream_);
  for (std::size_t i = 0; i < size; ++i) whole[i] = joined({high[i], low[i]});
  convert(ConstTensorView(whole.get(), DType::f32, {count}), values);
}

}  // namespace syslab::model
