// The error bound of operators made of plain sums of products: weighted sums, matrix products.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/dtype.hpp"
#include "core/host_device.hpp"
#include "core/rounding.hpp"

namespace syslab::ops {

// Bound on |computed − exact| for one element that is a sum of `terms` products, accumulated in fp32 (fp64 for fp64) in
// any order, with or without fused multiply-adds, and rounded once to `dtype`. `value` is the exact sum, `magnitude`
// the sum of the products' absolute values: the final rounding scales with `value`, all others with `magnitude`.
SYSLAB_HOST_DEVICE inline double sum_of_products_bound(DType dtype, std::int64_t terms, double value,
                                                       double magnitude) {
  const DType carrier = dtype == DType::f64 ? DType::f64 : DType::f32;
  const double unit = unit_roundoff(carrier);
  // A sum of n products in any order: at most n roundings touch each term (Higham, section 4.2, and one for the
  // product). The probable bound is the smaller one from 64 terms on.
  const double carried = std::min(gamma(terms, unit), gamma_probable(terms, unit)) * magnitude;
  const double stored = carrier == dtype ? 0.0 : unit_roundoff(dtype) * (std::abs(value) + carried);
  // Below the smallest normal number one rounding is absolute: half a unit of the subnormal grid for each term and for
  // the store.
  const double underflow =
      static_cast<double>(terms) * smallest_normal(carrier) * unit + smallest_normal(dtype) * unit_roundoff(dtype);
  return carried + stored + underflow;
}

}  // namespace syslab::ops
