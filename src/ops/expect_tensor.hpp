// Checks of the views passed to an operator. A failed check is an Error(usage) with the tensor, its property and the
// required one.
#pragma once

#include <string_view>

#include "core/tensor.hpp"

namespace syslab::ops {

// Has memory, this shape and dtype, and unit last stride; the other strides are free.
void expect_tensor(std::string_view name, const ConstTensorView& view, DType dtype, const Shape& shape);
// The same for any of the four dtypes.
void expect_tensor(std::string_view name, const ConstTensorView& view, const Shape& shape);

// f64 for f64, else f32: the dtype of statistics, sums and tables.
constexpr DType statistics_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

}  // namespace syslab::ops
