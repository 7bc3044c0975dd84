// The bound that every operator made of plain sums of products shares: weighted sums, matrix products.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"

namespace syslab::ops {

// Bound on |computed − exact| for one element that is a sum of `terms` products, carried in fp32 (fp64 for fp64) in any
// order, with or without fused multiply-adds, and rounded once to `dtype`. `value` is the exact sum, `magnitude` that
// of the products' absolute values: the last rounding scales with the first, all others with the second.
double sum_of_products_bound(DType dtype, std::int64_t terms, double value, double magnitude);

}  // namespace syslab::ops
