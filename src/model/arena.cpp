#include "model/arena.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/split_float.hpp"
#include "device/memory.hpp"
#include "model/weights/convert.hpp"

namespace syslab::model {
namespace {

using device::MemoryCategory;

MemoryCategory category_of(Plane plane) {
  switch (plane) {
    case Plane::weight:
    case Plane::copy:
    case Plane::low:
      return MemoryCategory::parameter;
    case Plane::gradient:
      return MemoryCategory::gradient;
    case Plane::first_moment:
    case Plane::second_moment:
      return MemoryCategory::optimizer;
  }
  return MemoryCategory::other;
}

void validate(const ArenaOptions& options) {
  if (options.dtype != DType::f32 && options.dtype != DType::f64) {
    throw Error(ErrorKind::usage,
                fmt::format("weights were asked for in {}: they are kept in fp32 (fp64 for the oracle), with a copy in "
                            "fp16 or bf16 if need be",
                            syslab::to_string(options.dtype)));
  }
  if (options.copy_dtype && size_of(*options.copy_dtype) != 2) {
    throw Error(ErrorKind::usage, fmt::format("a copy of the weights was asked for in {}: it is fp16 or bf16",
                                              syslab::to_string(*options.copy_dtype)));
  }
  if (options.split && (options.dtype != DType::f32 || options.copy_dtype != DType::bf16)) {
    throw Error(ErrorKind::usage, "weights are split into halves of fp32 with a copy in bf16, and nothing else");
  }
}

}  // namespace

std::string_view to_string(Plane plane) {
  switch (plane) {
    case Plane::weight:
      return "weight";
    case Plane::copy:
      return "weight copy";
    case Plane::low:
      return "lower halves of weights";
    case Plane::gradient:
      return "gradient";
    case Plane::first_moment:
      return "first moment";
    case Plane::second_moment:
      return "second moment";
  }
  return "?";
}

ParameterArena::ParameterArena(ParameterLayout layout, const ArenaOptions& options, device::Stream stream)
    : layout_(std::move(layout)), options_(options), stream_(stream) {
  validate(options_);
  for (int number = 0; number < kPlanes; ++number) {
    const auto plane = static_cast<Plane>(number);
    if (bytes(plane) == 0) continue;
    device::Buffer& buffer = buffers_[static_cast<std::size_t>(number)];
    buffer = device::Buffer(bytes(plane), fmt::format("parameters: {}", to_string(plane)), stream_, category_of(plane));
    device::fill_bytes(buffer.data(), 0, buffer.bytes(), stream_);
  }
  if (splits()) make_gains();
}

bool ParameterArena::has(Plane plane) const {
  switch (plane) {
    case Plane::weight:
      return options_.weights;
    case Plane::copy:
      return options_.weights && options_.copy_dtype.has_value();
    case Plane::low:
      return splits();
    case Plane::gradient:
      return options_.gradients;
    case Plane::first_moment:
    case Plane::second_moment:
      return options_.moments;
  }
  return false;
}

DType ParameterArena::dtype(Plane plane) const {
  require(plane);
  if (plane == Plane::low) return kLowHalf;
  return plane == Plane::copy ? *options_.copy_dtype : options_.dtype;
}

void ParameterArena::require(Plane plane) const {
  if (!has(plane)) {
    throw Error(ErrorKind::internal, fmt::format("this arena was made without the plane '{}'", to_string(plane)));
  }
}

TensorView ParameterArena::view_at(Plane plane, std::int64_t offset, const Shape& shape) const {
  const DType type = dtype(plane);
  if (plane == Plane::weight && splits()) {
    throw Error(ErrorKind::internal, "the weights of this arena lie in halves: read() and write() know them whole");
  }
  auto* base = buffers_[static_cast<std::size_t>(plane)].as<std::byte>();
  return {base + static_cast<std::size_t>(offset) * size_of(type), type, shape};
}

TensorView ParameterArena::whole(Plane plane) const { return view_at(plane, 0, {layout_.elements()}); }

TensorView ParameterArena::view(Plane plane, int index) const {
  return view_at(plane, layout_.offset(index), layout_.info(index).shape);
}

TensorView ParameterArena::qkv(Plane plane, std::int64_t layer) const {
  return view_at(plane, layout_.offset(layout_.layer(layer).q), layout_.qkv_shape());
}

std::vector<Plane> ParameterArena::planes_of_weights() const {
  if (splits()) return {Plane::copy, Plane::low};
  return {Plane::weight};
}

ConstTensorView ParameterArena::weights(int parameter) const {
  const ParameterKind kind = layout_.info(parameter).kind;
  if (splits() && kind == ParameterKind::norm) {
    const std::int64_t d = layout_.config().d_model;
    return {gains_.as<float>() + gain_row(parameter) * d, DType::f32, {d}};
  }
  const bool of_copy = read_by_products(kind) || splits();
  return view_at(of_copy ? compute_plane() : Plane::weight, layout_.offset(parameter),
                 layout_.bracket_shape(parameter));
}

GradientPlace ParameterArena::gradient(int parameter, bool add) const {
  return {view_at(Plane::gradient, layout_.offset(parameter), layout_.bracket_shape(parameter)), add};
}

std::size_t ParameterArena::bytes(Plane plane) const {
  const bool in_halves = plane == Plane::weight && splits();
  return has(plane) && !in_halves ? static_cast<std::size_t>(layout_.elements()) * size_of(dtype(plane)) : 0;
}

std::size_t ParameterArena::bytes() const {
  std::size_t sum = gains_.bytes() + gain_offsets_.bytes();
  for (int number = 0; number < kPlanes; ++number) sum += bytes(static_cast<Plane>(number));
  return sum;
}

void* ParameterArena::address(Plane plane, int index, std::int64_t first, std::int64_t count) const {
  const ParameterInfo& info = layout_.info(index);
  if (first < 0 || count < 0 || first > info.shape.elements() - count) {
    throw Error(ErrorKind::internal, fmt::format("elements {} to {} of '{}', which has {}", first, first + count,
                                                 info.name, info.shape.elements()));
  }
  return view_at(plane, layout_.offset(index) + first, {count}).data;
}

void ParameterArena::write(Plane plane, int index, std::int64_t first, const ConstTensorView& values) {
  if (plane == Plane::weight && splits()) return write_halves(index, first, values);
  write_plane(plane, index, first, values);
  if (plane == Plane::weight && has(Plane::copy)) write_plane(Plane::copy, index, first, values);
}

void ParameterArena::write_plane(Plane plane, int index, std::int64_t first, const ConstTensorView& values) {
  const std::int64_t count = values.elements();
  void* to = address(plane, index, first, count);
  const DType type = dtype(plane);
  const std::size_t size = static_cast<std::size_t>(count) * size_of(type);
  if (size == 0) return;
  if (values.dtype == type) return device::copy_now(to, values.data, size, stream_);
  const auto staged = std::make_unique_for_overwrite<std::byte[]>(size);
  convert(values, TensorView(staged.get(), type, {count}));
  device::copy_now(to, staged.get(), size, stream_);
}

void ParameterArena::read(Plane plane, int index, std::int64_t first, const TensorView& values) const {
  if (plane == Plane::weight && splits()) return read_halves(index, first, values);
  const std::int64_t count = values.elements();
  const void* from = address(plane, index, first, count);
  const DType type = dtype(plane);
  const std::size_t size = static_cast<std::size_t>(count) * size_of(type);
  if (size == 0) return;
  if (values.dtype == type) return device::copy_now(values.data, from, size, stream_);
  const auto staged = std::make_unique_for_overwrite<std::byte[]>(size);
  device::copy_now(staged.get(), from, size, stream_);
  convert(ConstTensorView(staged.get(), type, {count}), values);
}

std::vector<double> ParameterArena::read(Plane plane, int index) const {
  std::vector<double> values(static_cast<std::size_t>(layout_.info(index).shape.elements()));
  read(plane, index, 0, TensorView(values.data(), DType::f64, {layout_.info(index).shape.elements()}));
  return values;
}

}  // namespace syslab::model
