#include "core/tensor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace syslab {

Shape::Shape(std::span<const std::int64_t> sizes) : rank_(static_cast<int>(sizes.size())) {
  if (sizes.size() > kMaxRank) {
    throw Error(ErrorKind::usage,
                fmt::format("a tensor has at most {} dimensions, this one has {}", kMaxRank, sizes.size()));
  }
  if (std::any_of(sizes.begin(), sizes.end(), [](std::int64_t size) { return size < 0; })) {
    throw Error(ErrorKind::usage, "a tensor's sizes must not be negative");
  }
  std::copy(sizes.begin(), sizes.end(), sizes_.begin());
}

std::int64_t Shape::elements() const {
  std::int64_t count = 1;
  for (int dim = 0; dim < rank_; ++dim) count *= (*this)[dim];
  return count;
}

std::string to_string(const Shape& shape) { return fmt::format("({})", fmt::join(shape.to_vector(), ", ")); }

Strides contiguous_strides(const Shape& shape) {
  Strides strides{};
  std::int64_t step = 1;
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    strides[static_cast<std::size_t>(dim)] = step;
    step *= shape[dim];
  }
  return strides;
}

std::int64_t extent_elements(const Shape& shape, const Strides& strides) {
  if (shape.elements() == 0) return 0;
  std::int64_t last = 0;
  for (int dim = 0; dim < shape.rank(); ++dim) {
    last += (shape[dim] - 1) * strides[static_cast<std::size_t>(dim)];
  }
  return last + 1;
}

namespace {

template <typename T>
void gather(const ConstTensorView& source, std::vector<double>& out) {
  const T* base = source.as<T>();
  std::array<std::int64_t, kMaxRank> index{};
  const int rank = source.shape.rank();
  for (double& slot : out) {
    std::int64_t offset = 0;
    for (int dim = 0; dim < rank; ++dim) offset += index[static_cast<std::size_t>(dim)] * source.stride(dim);
    slot = to_double(base[offset]);
    for (int dim = rank - 1; dim >= 0; --dim) {  // odometer
      if (++index[static_cast<std::size_t>(dim)] < source.size(dim)) break;
      index[static_cast<std::size_t>(dim)] = 0;
    }
  }
}

}  // namespace

std::vector<double> to_doubles(const ConstTensorView& source) {
  std::vector<double> out(static_cast<std::size_t>(source.elements()));
  switch (source.dtype) {
    case DType::f64:
      gather<double>(source, out);
      break;
    case DType::f32:
      gather<float>(source, out);
      break;
    case DType::f16:
      gather<f16>(source, out);
      break;
    case DType::bf16:
      gather<bf16>(source, out);
      break;
  }
  return out;
}

}  // namespace syslab
