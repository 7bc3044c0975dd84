// What an operator demands of the views it is given. Every demand that fails is an Error(usage) that names the tensor,
// what it is and what it must be.
#pragma once

#include <string_view>

#include "core/tensor.hpp"

namespace syslab::ops {

// Has memory, this shape and dtype, and adjacent elements in its last dimension; the other strides are free.
void expect_tensor(std::string_view name, const ConstTensorView& view, DType dtype, const Shape& shape);
// The same of any of the four dtypes.
void expect_tensor(std::string_view name, const ConstTensorView& view, const Shape& shape);

// f64 if `dtype` is: what statistics, sums and tables are kept in.
constexpr DType statistics_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

}  // namespace syslab::ops
