#include "ops/attention/error_bound.hpp"

#include <algorithm>
#include <cmath>

namespace syslab::attention {

ErrorModel ErrorModel::of(DType dtype, bool tf32, double weights_unit) {
  ErrorModel model;
  const bool half = dtype == DType::f16 || dtype == DType::bf16;
  model.unit = dtype == DType::f64 ? unit_roundoff(DType::f64) : unit_roundoff(DType::f32);
  model.storage_unit = unit_roundoff(dtype);
  model.cast_unit = half ? unit_roundoff(dtype) : 0.0;
  // Every kernel keeps fp16's subnormals, which are 2⁻²⁴ apart; those of fp32 and bf16 may be flushed to zero. In fp64
  // the squares of errors underflow first, in the oracle itself.
  const double square_underflows = std::sqrt(smallest_normal(DType::f64));
  model.tiny = dtype == DType::f64 ? square_underflows : smallest_normal(DType::f32);
  model.storage_tiny = dtype == DType::f16 ? 0x1p-25 : model.tiny;
  model.cast_tiny = dtype == DType::f16 ? 0x1p-25 : 0.0;
  if (tf32) {
    model.factor_unit = 0x1p-11;
    model.cast_unit = std::sqrt(2.0) * model.factor_unit;
  }
  model.cast_unit = std::max(model.cast_unit, weights_unit);
  return model;
}

}  // namespace syslab::attention
