#include "ops/attention/error_bound.hpp"

#include <algorithm>
#include <cmath>

#include "core/rounding.hpp"

namespace syslab::attention {

ErrorModel ErrorModel::of(DType dtype) {
  ErrorModel model;
  const bool half = dtype == DType::f16 || dtype == DType::bf16;
  model.unit = dtype == DType::f64 ? unit_roundoff(DType::f64) : unit_roundoff(DType::f32);
  model.storage_unit = unit_roundoff(dtype);
  model.cast_unit = half ? unit_roundoff(dtype) : 0.0;
  // fp16's subnormals are 2⁻²⁴ apart and kept by every kernel; fp32's and bf16's may be flushed to zero. In fp64 it is
  // the squares of errors that underflow first, in the oracle itself.
  const double square_underflows = std::sqrt(smallest_normal(DType::f64));
  model.tiny = dtype == DType::f64 ? square_underflows : smallest_normal(DType::f32);
  model.storage_tiny = dtype == DType::f16 ? 0x1p-25 : model.tiny;
  model.cast_tiny = dtype == DType::f16 ? 0x1p-25 : 0.0;
  return model;
}

double ErrorModel::g(double roundings) const {
  const auto whole = static_cast<std::int64_t>(std::ceil(roundings));
  return std::min(gamma(whole, unit), gamma_probable(whole, unit, kLambda));
}

double kappa(double delta) {
  constexpr double kLimit = 40.0;
  const double bounded = std::min(delta, kLimit);
  return std::exp(bounded) * std::expm1(bounded) * std::max(1.0, delta / kLimit);
}

RowError row_error(const ErrorModel& model, std::int64_t head_dim, double scale, double q_norm, double k_norm,
                   double visible, double squares, double lse, double largest_score) {
  RowError row;
  row.visible = visible;
  row.squares = squares;
  if (visible == 0) return row;
  const auto roundings = static_cast<double>(head_dim + 6);
  const double magnitude = std::abs(scale) * q_norm * k_norm;
  // Products that underflow lose up to `tiny` each.
  const double flushed = roundings * model.tiny * std::max(1.0, std::abs(scale));
  row.score_sigma = std::sqrt(roundings) * model.unit * magnitude + flushed;
  row.score_bound = model.g(roundings) * magnitude + flushed;
  const double growth = row.score_bound > 0 ? kappa(row.score_bound) / row.score_bound : 1.0;
  const double averaged = growth * kLambda * row.score_sigma * std::sqrt(squares);
  row.lse_bound = std::min(row.score_bound, averaged) + model.g(2 * visible) + 2 * kFunctionUlps * model.unit +
                  4 * model.unit * (std::abs(lse) + std::abs(largest_score));
  return row;
}

double out_bound(const ErrorModel& model, const RowError& row, const OutSums& sums) {
  const double size = std::abs(sums.value);
  const double growth = kappa(row.score_bound);
  const double worst = growth * (sums.absolute + size);
  // √Σ P²(V − O)² ≤ √(2·(Σ P²V² + O²ΣP²))
  const double spread = std::sqrt(2 * (sums.squares + size * size * row.squares));
  const double averaged = row.score_bound > 0 ? growth / row.score_bound * kLambda * row.score_sigma * spread : 0.0;
  const double softmax = std::min({worst, averaged, 2 * sums.v_largest});
  const double row_sum = (model.g(2 * row.visible) + kFunctionUlps * model.unit) * size;
  const double functions = kFunctionUlps * model.unit * kLambda * std::sqrt(sums.squares);
  const double product = model.g(row.visible * (2 + 1.0 / 16) + 1) * 2 * sums.prefix;
  const double cast =
      kLambda * (model.cast_unit * std::sqrt(sums.squares) + model.cast_tiny * std::sqrt(sums.v_squares));
  const double flushed = row.visible * model.tiny * (1 + sums.v_largest);
  return softmax + row_sum + functions + product + cast + flushed + model.storage_unit * size + model.storage_tiny;
}

double gradient_bound(const ErrorModel& model, double scale, const GradientSums& sums) {
  const double size = std::abs(scale);
  const double random = kLambda * std::sqrt(sums.error_squares);
  const double product = model.g(sums.length * (2 + 1.0 / 16) + 1) * 2 * sums.prefix;
  const double underflow =
      kLambda * model.cast_tiny * std::sqrt(sums.other_squares) * std::max(1.0, 1.0 / size) + sums.length * model.tiny;
  return size * (random + product + underflow) + sums.coherent +
         (2 * kFunctionUlps * model.unit + model.storage_unit) * std::abs(sums.value) + model.storage_tiny;
}

}  // namespace syslab::attention
