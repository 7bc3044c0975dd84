// Converts between dtypes in host memory.
#pragma once

#include "core/tensor.hpp"

namespace syslab::model {

// Element by element, both contiguous and of as many elements, not overlapping. Rounds to nearest even; fp64 goes to a
// two-byte dtype by way of fp32.
void convert(const ConstTensorView& from, const TensorView& to);

}  // namespace syslab::model
