// Non-owning views of tensors: pointer, dtype, shape and strides.
//
// Strides count elements, not bytes, and may be anything that a kernel's contract allows (unit last stride by default).
// Sizes and strides are 64-bit everywhere: 65,536² does not fit in 32 bits.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "core/error.hpp"

namespace syslab {

inline constexpr int kMaxRank = 4;

// Sizes of up to four dimensions, outermost first.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes) : Shape(std::span(sizes.begin(), sizes.size())) {}
  explicit Shape(std::span<const std::int64_t> sizes);

  int rank() const { return rank_; }
  std::int64_t operator[](int dim) const { return sizes_[static_cast<std::size_t>(dim)]; }
  std::int64_t elements() const;
  std::vector<std::int64_t> to_vector() const { return {sizes_.begin(), sizes_.begin() + rank_}; }
  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
};

std::string to_string(const Shape& shape);  // "(4, 128, 64)"

using Strides = std::array<std::int64_t, kMaxRank>;

// Row-major strides of `shape`: the last dimension is contiguous.
Strides contiguous_strides(const Shape& shape);

// Number of elements from the first to the last that a view with these strides touches (0 for an empty shape).
std::int64_t extent_elements(const Shape& shape, const Strides& strides);

// `Pointer` is void* or const void*.
template <typename Pointer>
struct BasicTensorView {
  Pointer data = nullptr;
  DType dtype = DType::f32;
  Shape shape;
  Strides strides{};

  BasicTensorView() = default;
  BasicTensorView(Pointer data_, DType dtype_, const Shape& shape_)
      : data(data_), dtype(dtype_), shape(shape_), strides(contiguous_strides(shape_)) {}
  BasicTensorView(Pointer data_, DType dtype_, const Shape& shape_, const Strides& strides_)
      : data(data_), dtype(dtype_), shape(shape_), strides(strides_) {}

  // Elements as T. Throws Error(internal) if T is not the view's dtype: a wrongly dispatched kernel.
  template <typename T>
  auto* as() const {
    using Element = std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const T, T>;
    if (dtype_of<T> != dtype) {
      throw Error(ErrorKind::internal, "tensor view read as another dtype than it holds");
    }
    return static_cast<Element*>(data);
  }

  std::int64_t size(int dim) const { return shape[dim]; }
  std::int64_t stride(int dim) const { return strides[static_cast<std::size_t>(dim)]; }
  std::int64_t elements() const { return shape.elements(); }
};

using TensorView = BasicTensorView<void*>;

struct ConstTensorView : BasicTensorView<const void*> {
  using BasicTensorView::BasicTensorView;
  ConstTensorView() = default;
  ConstTensorView(const TensorView& view)  // NOLINT: reading a writable tensor is always fine
      : BasicTensorView(view.data, view.dtype, view.shape, view.strides) {}
};

// Describes a tensor before it has memory.
struct TensorSpec {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;

  std::size_t bytes() const { return static_cast<std::size_t>(shape.elements()) * size_of(dtype); }
};

// Copies `source` (any dtype, any strides) to a contiguous vector of double, row-major.
std::vector<double> to_doubles(const ConstTensorView& source);

}  // namespace syslab
