#include "property_tests/tensors.hpp"

#include <ostream>

namespace syslab::property {
namespace {

template <typename T>
T narrow(double value) {
  // f16 and bf16 hold fewer bits than float, and what a law stores there was rounded to them before, so going through
  // float rounds only once.
  return from_float<T>(static_cast<float>(value));
}
template <>
double narrow<double>(double value) {
  return value;
}

template <typename T>
void assign_as(const TensorView& view, std::span<const double> values) {
  T* base = view.as<T>();
  const int rank = view.shape.rank();
  const std::int64_t row = rank == 0 ? 1 : view.size(rank - 1), step = rank == 0 ? 1 : view.stride(rank - 1);
  for (std::size_t begin = 0; begin < values.size(); begin += static_cast<std::size_t>(row)) {
    std::int64_t rest = static_cast<std::int64_t>(begin) / row, offset = 0;
    for (int dim = rank - 2; dim >= 0; --dim) {
      offset += rest % view.size(dim) * view.stride(dim);
      rest /= view.size(dim);
    }
    for (std::int64_t i = 0; i < row; ++i) {
      base[offset + i * step] = narrow<T>(values[begin + static_cast<std::size_t>(i)]);
    }
  }
}

// Strides when the dimensions lie in memory in the order `outermost_first`, each with `gap[i]` elements after it.
Strides strides_in_order(const Shape& shape, std::span<const int> outermost_first, std::int64_t gap) {
  Strides strides{};
  std::int64_t step = 1;
  for (std::size_t i = outermost_first.size(); i-- > 0;) {
    const int dim = outermost_first[i];
    strides[static_cast<std::size_t>(dim)] = step;
    step = step * shape[dim] + gap;
  }
  return strides;
}

}  // namespace

void showValue(Layout layout, std::ostream& stream) {
  constexpr const char* kNames[] = {"contiguous", "padded", "swapped", "spaced"};
  stream << kNames[static_cast<std::size_t>(layout)];
}

Strides strides_of(const Shape& shape, Layout layout) {
  if (layout == Layout::contiguous) return contiguous_strides(shape);
  constexpr int kInOrder[] = {0, 1, 2, 3}, kSwapped[] = {0, 2, 1, 3};
  if (layout == Layout::swapped && shape.rank() == 4) return strides_in_order(shape, kSwapped, 0);
  const int guards = layout == Layout::spaced ? 16 : 3;
  return strides_in_order(shape, std::span(kInOrder, static_cast<std::size_t>(shape.rank())), guards);
}

Strides loose_strides_of(const Shape& shape, Layout layout) {
  if (layout == Layout::contiguous) return contiguous_strides(shape);
  constexpr int kSwapped[] = {0, 2, 1};
  if (layout == Layout::swapped && shape.rank() == 3) return strides_in_order(shape, kSwapped, 0);
  Strides strides = strides_of(shape, layout);
  for (std::int64_t& stride : strides) stride *= 2;
  return strides;
}

std::vector<double> random_values(std::uint64_t seed, std::string_view name, std::int64_t count, DType dtype,
                                  float scale) {
  std::vector<double> values(static_cast<std::size_t>(count));
  const RandomStream stream = RandomStream::derive(seed, "law", "", name);
  const DType drawn = dtype == DType::f64 ? DType::f32 : dtype;
  std::vector<std::byte> memory(static_cast<std::size_t>(count) * size_of(drawn));
  const TensorView view(memory.data(), drawn, Shape{count});
  fill(view, stream, Distribution::normal, scale);
  return to_doubles(view);
}

double rounded_to(DType dtype, double value) {
  switch (dtype) {
    case DType::f64:
      return value;
    case DType::f32:
      return static_cast<float>(value);
    case DType::f16:
      return to_double(to_f16(static_cast<float>(value)));
    case DType::bf16:
      return to_double(to_bf16(static_cast<float>(value)));
  }
  return value;
}

void assign(const TensorView& view, std::span<const double> values) {
  switch (view.dtype) {
    case DType::f64:
      return assign_as<double>(view, values);
    case DType::f32:
      return assign_as<float>(view, values);
    case DType::f16:
      return assign_as<f16>(view, values);
    case DType::bf16:
      return assign_as<bf16>(view, values);
  }
}

check::GuardedTensor input(std::string_view name, DType dtype, const Shape& shape, const Strides& strides,
                           std::span<const double> values) {
  check::GuardedTensor tensor(TensorSpec{std::string(name), dtype, shape}, strides);
  assign(tensor.view(), values);
  return tensor;
}

check::GuardedTensor output(std::string_view name, DType dtype, const Shape& shape, const Strides& strides) {
  return {TensorSpec{std::string(name), dtype, shape}, strides};
}

}  // namespace syslab::property
